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

// anchor returns what links call a heading.
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

// TestLinks has every link of every page that leads to a place of the project lead to
// one, and every command that is told to be run with go run be there.
func TestLinks(t *testing.T) {
	pages, links := 0, 0
	err := filepath.WalkDir("..", func(page string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "dist" || name == "out" || len(name) > 2 && name[0] == '.') {
			return filepath.SkipDir // what is made, and no part of it
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

// TestExamples has the README name every example, and say how many there are.
func TestExamples(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	mains, err := filepath.Glob("../examples/*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mains {
		dir := filepath.Dir(m)
		if name := "examples/" + filepath.Base(dir); !strings.Contains(string(text), "]("+name+")") {
			t.Errorf("README.md does not name %s", name)
		}
		if _, err := os.Stat(filepath.Join(dir, "README.md")); err != nil {
			t.Error(err)
		}
	}
	if want := "twenty-four small programs"; len(mains) != 24 || !strings.Contains(string(text), want) {
		t.Errorf("there are %d examples, and README.md has to say so", len(mains))
	}
}
