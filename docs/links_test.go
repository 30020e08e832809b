//go:build !js

package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	command = regexp.MustCompile(`go run (\./[\w./-]+)`)
)

// anchor returns the anchor of a heading in links.
func anchor(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(heading) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 0x7f:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// TestLinks requires that the target of every link within the project exists, and so does
// every command after go run.
func TestLinks(t *testing.T) {
	pages, links := 0, 0
	err := filepath.WalkDir("..", func(page string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "dist" || name == "out" || len(name) > 2 && name[0] == '.') {
			return filepath.SkipDir // build output is not part of the documentation
		}
		if d.IsDir() || filepath.Ext(page) != ".md" {
			return nil
		}
		pages++
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		for _, m := range link.FindAllSubmatch(text, -1) {
			to := string(m[1])
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			links++
			name, at, anchored := strings.Cut(to, "#")
			file := page
			if name != "" {
				file = filepath.Join(filepath.Dir(page), filepath.FromSlash(name))
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s: %v", page, to, err)
				continue
			}
			if !anchored {
				continue
			}
			there, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			found := false
			for _, h := range heading.FindAllSubmatch(there, -1) {
				found = found || anchor(string(h[1])) == at
			}
			if !found {
				t.Errorf("%s links to %s: no heading is called that", page, to)
			}
		}
		for _, m := range command.FindAllSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join("..", string(m[1]), "main.go")); err != nil {
				t.Errorf("%s says %s: %v", page, m[0], err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if pages < 30 || links < 100 {
		t.Errorf("%d links on %d pages: are they found?", links, pages)
	}
}

// TestExamples: examples/README.md lists every example, and each has a page.
func TestExamples(t *testing.T) {
	text, err := os.ReadFile("../examples/README.md")
	if err != nil {
		t.Fatal(err)
	}
	mains, err := filepath.Glob("../examples/*/main.go")
	if err != nil || len(mains) == 0 {
		t.Fatalf("%d examples: %v", len(mains), err)
	}
	for _, m := range mains {
		dir := filepath.Dir(m)
		if name := filepath.Base(dir); !strings.Contains(string(text), "]("+name+")") {
			t.Errorf("examples/README.md does not list %s", name)
		}
		if _, err := os.Stat(filepath.Join(dir, "README.md")); err != nil {
			t.Error(err)
		}
	}
}
