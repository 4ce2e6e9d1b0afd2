package postrider_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestGuaranteesNameTests(t *testing.T) {
	doc, err := os.ReadFile("docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(doc), -1)
	if len(named) == 0 {
		t.Fatal("docs/guarantees.md names no test")
	}
	code := testCode(t)
	for _, n := range named {
		if !strings.Contains(code, "func "+n[1]+"(t *testing.T)") {
			t.Errorf("docs/guarantees.md names %s, which does not exist", n[1])
		}
	}
}

// testCode is the text of all test files of the repository.
func testCode(t *testing.T) string {
	t.Helper()
	var code strings.Builder
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		code.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return code.String()
}
