// Package picture reads and writes the pictures that examples work on.
package picture

import (
	"bytes"
	"fmt"
	"image"
	_ "image/gif"
	_ "image/jpeg"
	"image/png"
	"os"
)

// Read returns the picture of a file in PNG, JPEG or GIF. An error names the file.
func Read(name string) (image.Image, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	img, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return img, nil
}

// Write makes a file of the picture, in PNG. A picture that cannot be encoded
// leaves the file as it was.
func Write(name string, img image.Image) error {
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		return err
	}
	return os.WriteFile(name, b.Bytes(), 0o644)
}
