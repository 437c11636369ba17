package files

import "testing"

func FuzzPattern(f *testing.F) {
	for _, s := range []string{"*.go", "**/a/**", "{a,{b,c}}/*", "[!a]?", "\\*", "./x", "/x", "a/../b", "{{{{a,b},c},d},e}", "**/**/**/*a*a*a*a"} {
		f.Add(s, "a/b/aaaaaaaaaaaaaaaaaaaa.go")
	}
	f.Fuzz(func(t *testing.T, given, name string) {
		if len(name) > 1000 {
			name = name[:1000]
		}
		p, err := parsePattern(given, "/w")
		if err != nil {
			return
		}
		if p.match(name) && p.baseOnly && !p.match("some/where/"+name) && name != "" && name[len(name)-1] != '/' {
			t.Errorf("%q matches %q, but not further down", given, name)
		}
	})
}
