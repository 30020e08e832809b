package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// suiteGroup is a schema of the JSON Schema Test Suite with values that fit it or do not.
type suiteGroup struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

// TestSuite runs the tests of testdata/suite.json: draft 2020-12 of https://github.com/json-schema-org/JSON-Schema-Test-Suite,
// with the optional tests of the formats that the package supports. A schema is refused or its grammar matches no
// invalid value, except for oneOf. Valid values may be refused, because grammars are narrower than schemas: at most two
// fifths are.
func TestSuite(t *testing.T) {
	text, err := os.ReadFile("testdata/suite.json")
	if err != nil {
		t.Fatal(err)
	}
	var files map[string][]suiteGroup
	if err := json.Unmarshal(text, &files); err != nil {
		t.Fatal(err)
	}
	refused, valid, matched, invalid := 0, 0, 0, 0
	for file, groups := range files {
		for _, group := range groups {
			g, err := FromJSONSchema(group.Schema)
			if err != nil {
				if !slices.ContainsFunc([]error{ErrUnsupported, ErrSchema, ErrLimit}, func(kind error) bool { return errors.Is(err, kind) }) {
					t.Errorf("%s: %s: %v", file, group.Description, err)
				}
				refused++
				continue
			}
			for _, c := range group.Tests {
				var value bytes.Buffer
				if err := json.Compact(&value, c.Data); err != nil {
					t.Fatal(err)
				}
				ok, _ := matches(g, value.String())
				switch {
				case !c.Valid:
					invalid++
					if ok && !strings.Contains(string(group.Schema), "oneOf") {
						t.Errorf("%s: %s: %s: %s matches %s", file, group.Description, c.Description, &value, group.Schema)
					}
				case ok:
					matched++
					fallthrough
				default:
					valid++
				}
			}
		}
	}
	t.Logf("%d schemas refused; %d of %d valid values match, none of %d invalid ones outside of oneOf", refused, matched, valid, invalid)
	if matched < valid*3/5 {
		t.Errorf("only %d of %d valid values match", matched, valid)
	}
}
