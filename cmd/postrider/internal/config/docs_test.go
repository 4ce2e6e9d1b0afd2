package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What the documentation tells people to write is accepted as it stands there.
func TestDocumentedConfigurationsAreAccepted(t *testing.T) {
	var files []string
	for _, pattern := range []string{"../../../../README.md", "../../../../docs/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		files = append(files, found...)
	}
	seen := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range yamlBlocks(string(data)) {
			seen++
			if _, err := Parse(filepath.Base(file), []byte(whole(block)), testEnv); err != nil {
				t.Errorf("%s:\n%s\nis refused:\n%v", file, block, err)
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d configurations were found", seen)
	}
}

// yamlBlocks are the configurations in a Markdown text.
func yamlBlocks(text string) (blocks []string) {
	for _, rest := range strings.Split(text, "```yaml\n")[1:] {
		block, _, _ := strings.Cut(rest, "```")
		if strings.HasPrefix(block, "outbox:") {
			blocks = append(blocks, block)
		}
	}
	return blocks
}

// address is the example that a comment gives for the address of a database.
var address = regexp.MustCompile(`\$\{DATABASE_URL\} +# (\S+)`)

// whole takes the address that the block tells people to write, and adds what it leaves out because it shows one section.
func whole(block string) string {
	block = address.ReplaceAllString(block, `"$1"`)
	if !strings.Contains(block, "\nsinks:") {
		block += "sinks: {main: {type: stdout}}\nroutes: [{sink: main}]\n"
	}
	return block
}
