package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// peculiar are bodies that come out changed when anything on the way decodes and encodes them.
var peculiar = []string{
	`{"emoji":"🐎 → 📮","family":"👩‍👩‍👧","flag":"🇨🇭"}`,
	`{"beyond":9007199254740993,"large":123456789012345678901234567890,"one":1.0,"tiny":1e-400,"minus":-0}`,
	`{"twice":1,"twice":2,"twice":{"twice":[]}}`,
	`{"escapes":"\u0000\u001f\"\\\/\b\f\n\r\t","snowman":"\u2603","pair":"\ud83d\ude00","alone":"\ud800"}`,
	"{\n\t\"white\" : [ 1 ,\r\n 2 ] ,\n  \"space\":\t{ }\n}\n",
	`[[[[[[[[[[[[[[[[{"deep":[{"a":{"b":{"c":{"d":[null,true,false]}}}}]}]]]]]]]]]]]]]]]]`,
	`{"html":"<script>alert('&amp;')</script>","separators":"` + "\u2028\u2029" + `","bom":"` + "\ufeff" + `"}`,
	`"only a text"`,
	`0`,
	`null`,
	`{"":"empty name","z":1,"a":2}`,
}

// loadDocuments returns the peculiar bodies and, when a file is given, those of its webhook examples, byte for byte
// as they stand in it. The file has the form of the npm package @octokit/webhooks-examples.
func loadDocuments(name string) ([][]byte, error) {
	var documents [][]byte
	for _, text := range peculiar {
		documents = append(documents, []byte(text))
	}
	if name == "" {
		return documents, nil
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var webhooks []struct {
		Examples []json.RawMessage `json:"examples"`
	}
	if err := json.Unmarshal(content, &webhooks); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, webhook := range webhooks {
		for _, example := range webhook.Examples {
			documents = append(documents, example)
		}
	}
	return documents, nil
}
