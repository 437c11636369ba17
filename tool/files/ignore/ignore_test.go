package ignore_test

import (
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop/tool/files/ignore"
)

// Where a sentence does not say otherwise, git check-ignore answers the same.
func TestRulesSayWhatIsExcluded(t *testing.T) {
	for _, c := range []struct {
		name     string
		rules    string
		path     string // a slash at the end: a directory
		excluded bool
	}{
		{"nothing excludes nothing", "", "a", false},
		{"a comment is no rule", "#a", "#a", false},
		{"a blank line is no rule", "\n\n \n", "a", false},
		{"a name in the same directory", "a", "a", true},
		{"a name in any directory below", "a", "x/y/a", true},
		{"not a part of a name", "a", "ab", false},
		{"a star", "*.log", "x/b.log", true},
		{"a star stops at a slash", "x*log", "x/b.log", false},
		{"a star alone", "*", "x", true},
		{"a question mark", "a?", "ab", true},
		{"a question mark needs a character", "a?", "a", false},
		{"a question mark is a whole character", "a?", "aé", true},
		{"a class", "[ab]", "b", true},
		{"a range", "[a-c]x", "bx", true},
		{"a negated class", "[!a]", "b", true},
		{"a class negated the other way", "[^a]", "a", false},
		{"a bracket first in a class", "[]a]", "]", true},
		{"a class never takes a slash", "x[!a]y", "x/y", false},
		{"a class without an end", "[a", "[a", false},
		{"a class by name is not known", "[[:alpha:]]", "a", false},
		{"braces mean themselves", "{a,b}", "{a,b}", true},
		{"braces are no alternatives", "{a,b}", "a", false},
		{"a slash at the start", "/a", "a", true},
		{"a slash at the start holds for the top only", "/a", "x/a", false},
		{"a slash inside", "x/a", "x/a", true},
		{"a slash inside holds from the top only", "x/a", "y/x/a", false},
		{"a slash at the end takes a directory", "a/", "x/a/", true},
		{"a slash at the end takes no file", "a/", "a", false},
		{"two stars in front", "**/a/b", "x/y/a/b", true},
		{"two stars in front, none between", "**/a", "a", true},
		{"two stars at the end", "a/**", "a/x/y", true},
		{"two stars at the end leave the directory", "a/**", "a/", false},
		{"two stars between", "a/**/b", "a/x/y/b", true},
		{"two stars between, none there", "a/**/b", "a/b", true},
		{"two stars in a name are one", "a**", "abc", true},
		{"many stars are two", "a/****/b", "a/x/y/b", true},
		{"taken back", "*.log\n!keep.log", "keep.log", false},
		{"the last one counts", "!keep.log\n*.log", "keep.log", true},
		{"an escaped mark", "\\!a", "!a", true},
		{"an escaped comment", "\\#a", "#a", true},
		{"an escaped star", "a\\*", "a*", true},
		{"an escaped star is no star", "a\\*", "ab", false},
		{"a backslash at the end", "a\\", "a\\", false},
		{"spaces at the end", "a  ", "a", true},
		{"an escaped space at the end", "a\\ ", "a ", true},
		{"a tab at the end counts", "a\t", "a", false},
		{"CRLF", "a\r\nb\r\n", "a", true},
		{"a byte order mark", "\ufeffa", "a", true},
		{"a slash alone", "/", "a/", false},
		{"no UTF-8", "\xff*", "\xffa", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := (*ignore.Stack)(nil).Push(".", ignore.Parse([]byte(c.rules)))
			path, dir := strings.CutSuffix(c.path, "/")
			if got := s.Excluded(path, dir); got != c.excluded {
				t.Errorf("%q with %q: %v", c.path, c.rules, got)
			}
		})
	}
}

func TestADeeperFileCountsBeforeAnUpperOne(t *testing.T) {
	top := (*ignore.Stack)(nil).Push("", ignore.Parse([]byte("*.log\n/x/only")))
	sub := top.Push("x", ignore.Parse([]byte("!keep.log\n/here\n*.tmp")))
	for _, c := range []struct {
		name     string
		stack    *ignore.Stack
		path     string
		excluded bool
	}{
		{"taken back below", sub, "x/keep.log", false},
		{"the upper rule holds below", sub, "x/other.log", true},
		{"the upper rule with a path holds below", sub, "x/only", true},
		{"a slash at the start is the deeper directory", sub, "x/here", true},
		{"it does not reach further down", sub, "x/y/here", false},
		{"the deeper rule does not hold above", top, "keep.log", true},
		{"nor beside", sub, "y/a.tmp", false},
		{"no rules", nil, "a.log", false},
	} {
		if got := c.stack.Excluded(c.path, false); got != c.excluded {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if top.Push("y", ignore.Parse(nil)) != top {
		t.Error("a file without rules made a level")
	}
}

// A file has no size that hurts: only its beginning counts.
func TestALargeFileIsReadInPart(t *testing.T) {
	text := "first\n" + strings.Repeat("# a comment\n", ignore.MaxFile/12) + "last\n"
	s := (*ignore.Stack)(nil).Push(".", ignore.Parse([]byte(text)))
	if !s.Excluded("first", false) || s.Excluded("last", false) {
		t.Error("not the beginning alone")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"a", "*.log\n!keep.log", "/a/**/b/", "[]a-", "\\", "**", "a**b/***/[!x]", "{a,{b,c}}", "[\\", "\xff[\xff-\xfe]"} {
		f.Add(s, "a/b.log")
	}
	f.Fuzz(func(t *testing.T, rules, path string) {
		s := (*ignore.Stack)(nil).Push(".", ignore.Parse([]byte(rules)))
		for _, dir := range []bool{false, true} {
			got := s.Excluded(path, dir)
			// A last rule that takes everything back wins over all others.
			if back := s.Push(".", ignore.Parse([]byte("!**\n!/**"))); back.Excluded(path, dir) && path != "" {
				t.Errorf("%q with %q: %v and not taken back", path, rules, got)
			}
		}
	})
}
