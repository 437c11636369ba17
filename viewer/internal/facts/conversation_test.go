package facts

import (
	"reflect"
	"strings"
	"testing"
)

// The parts of an item are one JSON object: of two members with one name neither
// would be in it.
func TestNoMemberOfAnItemHidesAnother(t *testing.T) {
	seen := map[string]string{}
	var look func(of reflect.Type)
	look = func(of reflect.Type) {
		for i := range of.NumField() {
			f := of.Field(i)
			if f.Anonymous {
				look(f.Type.Elem())
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if other, there := seen[name]; there {
				t.Errorf("%s.%s and %s are both %q", of.Name(), f.Name, other, name)
			}
			seen[name] = of.Name() + "." + f.Name
		}
	}
	look(reflect.TypeFor[Item]())
	if len(seen) < 20 {
		t.Fatalf("only %d members", len(seen))
	}
}
