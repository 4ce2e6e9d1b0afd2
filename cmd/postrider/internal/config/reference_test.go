package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

var references = []string{"testdata/reference.yaml", "testdata/reference-existing-table.yaml"}

// reference gives a file as a tree that may be changed.
func reference(t *testing.T, file string) *yaml.Node {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var document yaml.Node
	if err := yaml.Load(data, &document); err != nil {
		t.Fatal(err)
	}
	return document.Content[0]
}

func parseTree(t *testing.T, root *yaml.Node) (*Config, error) {
	t.Helper()
	data, err := yaml.Dump(root)
	if err != nil {
		t.Fatal(err)
	}
	return Parse("reference.yaml", data, testEnv)
}

func testEnv(name string) (string, bool) {
	if name == "DATABASE_URL" {
		return "postgres://app:secret@localhost/app", true
	}
	if name == "WEBHOOK_URL" {
		return "https://hooks.example.com/T0/secret", true
	}
	return "value of " + name, strings.HasPrefix(name, "NATS_") || name == "KAFKA_PASSWORD" || name == "POSTRIDER_TOKEN" ||
		strings.HasPrefix(name, "REDIS_") || strings.HasPrefix(name, "WEBHOOK_") || name == "RABBITMQ_PASSWORD"
}

// mappings calls each for every mapping below the node, with its path.
func mappings(n *yaml.Node, path string, each func(path string, mapping *yaml.Node)) {
	switch n.Kind {
	case yaml.MappingNode:
		each(path, n)
		for i := 0; i < len(n.Content); i += 2 {
			mappings(n.Content[i+1], join(path, n.Content[i].Value), each)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			mappings(item, fmt.Sprintf("%s[%d]", path, i), each)
		}
	}
}

// comment gives what stands above a key, as one line.
func comment(key *yaml.Node) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(key.HeadComment, "#", "")), " ")
}

// onlyDefaults gives the node without the keys that have no default.
func onlyDefaults(n *yaml.Node) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return n
	}
	clone := *n
	clone.Content = nil
	for i := 0; i < len(n.Content); i += 2 {
		if !strings.HasSuffix(comment(n.Content[i]), "No default.") {
			clone.Content = append(clone.Content, n.Content[i], onlyDefaults(n.Content[i+1]))
		}
	}
	return &clone
}

// Each key is taken out in turn, and the outcome must be what its comment says.
func TestReferenceGivesTheDefaults(t *testing.T) {
	for _, file := range references {
		t.Run(file, func(t *testing.T) { checkDefaults(t, reference(t, file)) })
	}
}

func checkDefaults(t *testing.T, root *yaml.Node) {
	t.Helper()
	if _, err := parseTree(t, root); err != nil {
		t.Fatalf("the reference is refused:\n%v", err)
	}
	mappings(root, "", func(path string, mapping *yaml.Node) {
		all := mapping.Content
		defer func() { mapping.Content = all }()
		for i := 0; i < len(all); i += 2 {
			says, withKey := comment(all[i]), slices.Clone(all)
			if !strings.HasSuffix(says, "No default.") {
				withKey[i+1] = onlyDefaults(all[i+1])
			}
			mapping.Content = withKey
			with, _ := parseTree(t, root)
			mapping.Content = slices.Delete(slices.Clone(all), i, i+2)
			without, err := parseTree(t, root)
			checkKey(t, join(path, all[i].Value), says, with, without, err)
		}
	})
}

func checkKey(t *testing.T, key, says string, with, without *Config, err error) {
	t.Helper()
	same := err == nil && reflect.DeepEqual(with, without)
	switch {
	case says == "":
		t.Errorf("%s has no comment", key)
	case strings.HasSuffix(says, "Required."):
		if err == nil || !strings.Contains(err.Error(), "is missing") {
			t.Errorf("%s is said to be required, but without it: %v", key, err)
		}
	case strings.HasSuffix(says, "No default."):
		if same {
			t.Errorf("%s is said to have no default, but the value given is the default", key)
		}
	case !same:
		t.Errorf("%s: the value given is not the default (error: %v)", key, err)
	}
}

// An unknown key is put into each mapping in turn. The hint lists the keys
// that are known there, and the reference must have all of them, if not in
// that mapping then in another of the same kind.
func TestReferenceNamesEveryKey(t *testing.T) {
	shown := map[string]map[string]bool{} // by the list of known keys
	for _, file := range references {
		showKeys(t, reference(t, file), shown)
	}
	for known, keys := range shown {
		want := slices.Sorted(slices.Values(strings.Split(known, ", ")))
		if got := slices.Sorted(maps.Keys(keys)); !slices.Equal(got, want) {
			t.Errorf("the reference has %v\nthe package knows %v", got, want)
		}
	}
	if len(shown) < 18 {
		t.Errorf("only %d kinds of mapping seen", len(shown))
	}
}

func showKeys(t *testing.T, root *yaml.Node, shown map[string]map[string]bool) {
	t.Helper()
	mappings(root, "", func(path string, mapping *yaml.Node) {
		if path == "sinks" || path == "outbox.headers" || path == "outbox.destinations" || strings.HasSuffix(path, ".set_headers") || strings.HasSuffix(path, ".unroutable_by") {
			return // its keys are free names
		}
		all := mapping.Content
		defer func() { mapping.Content = all }()
		mapping.Content = append(slices.Clone(all),
			&yaml.Node{Kind: yaml.ScalarNode, Value: "qqqqqqqqqqqq"}, &yaml.Node{Kind: yaml.ScalarNode, Value: "1"})
		_, err := parseTree(t, root)
		var mistakes *Error
		if !errors.As(err, &mistakes) || len(mistakes.Problems) != 1 {
			t.Fatalf("an unknown key in %q gives: %v", path, err)
		}
		known, ok := strings.CutPrefix(mistakes.Problems[0].Hint, "known keys: ")
		if !ok {
			t.Fatalf("hint is %q", mistakes.Problems[0].Hint)
		}
		if shown[known] == nil {
			shown[known] = map[string]bool{}
		}
		for i := 0; i < len(all); i += 2 {
			shown[known][all[i].Value] = true
		}
	})
}
