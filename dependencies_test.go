package postrider_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/postrider/postrider"

func TestModuleRequiresNothing(t *testing.T) {
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if word, _, _ := strings.Cut(strings.TrimSpace(line), " "); word == "require" || word == "replace" {
			t.Errorf("go.mod: %s", line)
		}
	}
}

func TestPackagesAndTestsImportOnlyTheStandardLibrary(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-test", "-e",
		"-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./...")
	list.Env = append(os.Environ(), "GOWORK=off")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	if len(out) == 0 {
		t.Fatal("go list found no package")
	}
	for line := range strings.Lines(string(out)) { // such as: path_test [path.test]
		path, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		path = strings.TrimSuffix(strings.TrimSuffix(path, ".test"), "_test")
		if path != module && !strings.HasPrefix(path, module+"/") {
			t.Errorf("%s is not of the standard library", path)
		}
	}
}
