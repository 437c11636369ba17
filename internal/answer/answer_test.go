package answer_test

import (
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/answer"
)

func TestMembersStandInTheOrderInWhichTheyAreAdded(t *testing.T) {
	got := string(answer.New().Text("b", "x\"y").Number("a", -1).NumberOrNull("none", -1).TextOrNull("empty", "").
		Bool("ok", true).Raw("raw", []byte(`{ "a" : 1 }`)).
		Raw("seqs", answer.Seqs([]outcrop.Seq{1, 2})).Raw("no", answer.Seqs[outcrop.Seq](nil)).
		Raw("in", answer.Inner().Text("c", "d").End()).End())
	want := `{"schema":1,"b":"x\"y","a":-1,"none":null,"empty":null,"ok":true,"raw":{ "a" : 1 },"seqs":[1,2],"no":[],"in":{"c":"d"}}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
