package outcrop

import "testing"

// What is appended must be readable again, and readers have a limit.
func TestAnEventLongerThanAnyReaderTakesIsRefused(t *testing.T) {
	s, err := New(Header{ID: "s"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	line := make([]byte, MaxRecord+1)
	for _, from := range []origin{fromAppend, fromSeed, fromStore, fromReading} {
		ev := Event{Type: TypeTurnStart, Data: []byte(`{"turn":1}`), line: line[:MaxRecord]}
		if err := s.admit(&ev, from, 0, nil); err != nil {
			t.Errorf("%d bytes: %v", len(ev.line), err)
		}
		ev.line = line
		if err := s.admit(&ev, from, 0, nil); err == nil || err.Code != "RECORD_TOO_BIG" {
			t.Errorf("%d bytes: %v", len(ev.line), err)
		}
	}
}
