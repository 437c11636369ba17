package mcp

import (
	"math/rand"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestANameSaysServerAndTool(t *testing.T) {
	long := strings.Repeat("x", 80)
	for _, c := range []struct {
		name string
		all  []origin
		want []string
	}{
		{"letters, digits, _ and - stay", []origin{{"files", "read_2-b"}}, []string{"mcp__files__read_2-b"}},
		{"other characters become _", []origin{{"my files", "a.b/c:ü"}}, []string{"mcp__my_files__a_b_c__"}},
		{"a long name is cut and ends in a hash", []origin{{"s", long}}, []string{"mcp__s__" + strings.Repeat("x", 47) + "_cbf4205d"}},
		{"names that would be equal all get a hash", []origin{{"s", "a.b"}, {"s", "a_b"}, {"s", "c"}}, []string{"mcp__s__a_b_", "mcp__s__a_b_", "mcp__s__c"}},
		{"two servers that would have one name", []origin{{"x", "y__z"}, {"x__y", "z"}}, []string{"mcp__x__y__z_", "mcp__x__y__z_"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := mapNames(c.all)
			for i, o := range c.all {
				if want := c.want[i]; got[o] != want && !(strings.HasSuffix(want, "_") && strings.HasPrefix(got[o], want) && len(got[o]) == len(want)+hashDigits) {
					t.Errorf("%v is called %q, want %q", o, got[o], want)
				}
			}
		})
	}
}

func TestNamesAreValidAndDoNotDependOnOrder(t *testing.T) {
	valid := regexp.MustCompile(`^mcp__[A-Za-z0-9_-]{1,59}$`)
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.OneOf(rapid.StringMatching(`[ab_.]{1,5}`), rapid.String(), rapid.StringMatching(`[a-z_]{50,70}`))
		all := rapid.SliceOfDistinct(rapid.Custom(func(t *rapid.T) origin {
			return origin{part.Draw(t, "server"), part.Draw(t, "tool")}
		}), func(o origin) origin { return o }).Draw(t, "origins")
		names := mapNames(all)
		shuffled := append([]origin(nil), all...)
		rand.New(rand.NewSource(int64(len(all)))).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		again := mapNames(shuffled)
		for _, o := range all {
			if !valid.MatchString(names[o]) {
				t.Errorf("%q is no name", names[o])
			}
			if names[o] != again[o] {
				t.Errorf("%v is called %q and %q", o, names[o], again[o])
			}
		}
	})
}
