package picture

import (
	"image"
	"image/color"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWriteRead(t *testing.T) {
	img := image.NewNRGBA(image.Rect(0, 0, 5, 3))
	img.SetNRGBA(4, 2, color.NRGBA{1, 2, 3, 255})
	name := filepath.Join(t.TempDir(), "x.png")
	if err := Write(name, img); err != nil {
		t.Fatal(err)
	}
	got, err := Read(name)
	if err != nil {
		t.Fatal(err)
	}
	if r, g, b, _ := got.At(4, 2).RGBA(); got.Bounds().Size() != image.Pt(5, 3) || r>>8 != 1 || g>>8 != 2 || b>>8 != 3 {
		t.Errorf("a picture of %v came back as %v with the colour %d %d %d", img.Bounds(), got.Bounds(), r>>8, g>>8, b>>8)
	}
	// PNG has no pictures without pixels: the file stays.
	if err := Write(name, image.NewNRGBA(image.Rectangle{})); err == nil {
		t.Error("a picture without pixels was written")
	}
	if again, err := Read(name); err != nil || again.Bounds() != got.Bounds() {
		t.Errorf("a picture that cannot be encoded destroyed the file: %v", err)
	}
}

func TestMistakes(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("no picture"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Join(dir, "none"), text, dir} {
		if _, err := Read(name); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("reading %s: %v", name, err)
		}
	}
	where := filepath.Join(dir, "no", "where.png")
	if err := Write(where, image.NewGray(image.Rect(0, 0, 1, 1))); err == nil || !strings.Contains(err.Error(), where) {
		t.Errorf("writing %s: %v", where, err)
	}
}
