package destination

import "testing"

func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		arrived []string
		right   bool
	}{
		"in order":    {[]string{`"a/0"`, `"b/0"`, `"a/1"`}, true},
		"repeated":    {[]string{`"a/0"`, `"a/1"`, `"a/0"`, `"b/0"`, `"a/1"`}, true},
		"lost":        {[]string{`"a/0"`, `"b/0"`}, false},
		"key lost":    {[]string{`"a/0"`, `"a/1"`}, false},
		"disordered":  {[]string{`"a/1"`, `"a/0"`, `"b/0"`}, false},
		"ghost":       {[]string{`"a/0"`, `"a/1"`, `"b/0"`, `"b/1"`}, false},
		"not ours":    {[]string{`"a/0"`, `"a/1"`, `"b/0"`, `{}`}, false},
		"unknown key": {[]string{`"a/0"`, `"a/1"`, `"b/0"`, `"c/0"`}, false},
	} {
		if wrong := Check(test.arrived, map[string]int{"a": 2, "b": 1}); (len(wrong) == 0) != test.right {
			t.Errorf("%s: %q", name, wrong)
		}
	}
}
