package fields

import (
	"slices"
	"testing"
)

func TestMembersAreFound(t *testing.T) {
	o := Of([]byte(` {"a":"x","b":true,"n":7,"l":[1,"2"],"o":{"in":"y"},"a":"last","\u0061b":"escaped","none":null} `))
	if !o.IsObject() || o.Text("a") != "last" || !o.True("b") || o.Int("n") != 7 || o.Of("o").Text("in") != "y" || o.Text("ab") != "escaped" || string(o.Get("none")) != "null" {
		t.Errorf("%+v", o)
	}
	var l []string
	for e := range o.List("l") {
		l = append(l, string(e))
	}
	if !slices.Equal(l, []string{"1", `"2"`}) {
		t.Errorf("%q", l)
	}
	if o.Get("absent") != nil || o.Text("n") != "" || o.True("a") || o.Int("a") != 0 || o.Of("n").IsObject() {
		t.Error("members of another kind are taken for something")
	}
	for range o.List("a") {
		t.Error("a string has elements")
	}
	for _, v := range []string{"", "null", "7", `"x"`, "[1]"} {
		if n := Of([]byte(v)); n.IsObject() || n.Get("a") != nil {
			t.Errorf("%s is an object", v)
		}
	}
}
