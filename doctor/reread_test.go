package doctor

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop/wire"
)

// Every refused event costs a pass over the log, so a long log with many of
// them gets fewer.
func TestALongLogWithManyRefusedEventsIsNotReadAHundredTimes(t *testing.T) {
	defer func(n int64) { maxReread = n }(maxReread)
	var b strings.Builder
	b.WriteString(`{"type":"session","version":0,"id":"s1","createdAt":1,"delegationDepth":0}` + "\n")
	for i := range 150 {
		fmt.Fprintf(&b, `{"type":"user/message","seq":%d,"time":1,"data":{"content":[],"source":{"kind":"user"},"role":"user","id":"u"},"surfaceOp":"nowhere"}`+"\n", i)
	}
	for _, c := range []struct {
		most   int64
		errors int
	}{{1 << 30, maxPasses}, {50 << 10, 28}, {1, minPasses}} {
		maxReread = c.most
		findings, sum := Verify(context.Background(), Target{Name: "x", R: strings.NewReader(b.String()), Size: int64(b.Len()), Encoding: wire.Plain}, Options{})
		more := false
		for f := range findings {
			more = more || f.Code == "MORE_FINDINGS"
		}
		if sum.Errors != c.errors || !more {
			t.Errorf("at most %d bytes: %d errors, more %v", c.most, sum.Errors, more)
		}
	}
}
