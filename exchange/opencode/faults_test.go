package opencode_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/exchangetest"
	"github.com/outcrop-dev/outcrop/exchange/opencode"
)

// TestADatabaseThatCannotBeReadIsNamed where a person names the folder that it
// lies in, and not passed over as somebody else's; what can be read of one is
// taken.
func TestADatabaseThatCannotBeReadIsNamed(t *testing.T) {
	const sessions = 6
	change := func(query string) func(exchangetest.TB, string) {
		return func(t exchangetest.TB, path string) {
			db, err := sql.Open("sqlite", path)
			tb(t, err)
			_, err = db.Exec(query)
			tb(t, errors.Join(err, db.Close()))
		}
	}
	bytes := func(f func([]byte) []byte) func(exchangetest.TB, string) {
		return func(t exchangetest.TB, path string) {
			b, err := os.ReadFile(path)
			tb(t, err)
			tb(t, os.WriteFile(path, f(b), 0o600))
		}
	}
	for _, c := range []struct {
		name  string
		fault func(t exchangetest.TB, path string)
		want  string // of the error, "" for none
		notes string // of the report
		taken int
	}{
		{"torn", bytes(func(b []byte) []byte { return b[:len(b)*2/3] }), "the database is damaged", "", 0},
		{"its first page alone", bytes(func(b []byte) []byte { return b[:4096] }), "the database is damaged", "", 0},
		{"not even that", bytes(func(b []byte) []byte { return b[:50] }), "it is no SQLite database", "", 0},
		{"no parts", change("DROP TABLE part"), "it is no database of opencode: schema version 0, tables message, session", "", 0},
		{"no sessions", change("DROP TABLE session"), "it is no database of opencode", "", 0},
		{"a column that is not there", change("ALTER TABLE message RENAME COLUMN data TO body"), "its table message has no column data", "", 0},
		{"no sessions in it", change("DELETE FROM session; DELETE FROM message; DELETE FROM part"), "", "", 0},
		{"messages of a session that is gone", change("DELETE FROM session WHERE id = 'ses_0003'"), "", "dropped 2 message: its session is not there", sessions - 1},
		{"a parent that is gone, and two that are each other's", change("UPDATE session SET parent_id = 'ses_9999' WHERE id = 'ses_0001'; UPDATE session SET parent_id = 'ses_0003' WHERE id = 'ses_0002'; UPDATE session SET parent_id = 'ses_0002' WHERE id = 'ses_0003'"),
			"", "", sessions},
		{"rows that are no objects", change("UPDATE part SET data = '{\"type\":' WHERE message_id = 'msg_001_2'; UPDATE message SET data = '[]' WHERE id = 'msg_002_1'; UPDATE part SET data = x'ff00' WHERE message_id = 'msg_003_2'"), "",
			"dropped 1 message: it is no JSON object\ndropped 2 part: it is no JSON object\ndropped 1 part: its message cannot be read\ndropped 2 reply: it has no content", sessions},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			var all []story
			for i := range sessions {
				s := session(fmt.Sprintf("ses_%04d", i))
				s.messages = []told{user(1, says("one "+strings.Repeat("x", 3000))), reply(2, nil, says("1"))}
				for j := range s.messages {
					s.messages[j].id = fmt.Sprintf("msg_%03d_%d", i, j+1)
				}
				all = append(all, s)
			}
			c.fault(t, forms[2].write(t, dir, all...))
			in := exchangetest.Import(t, opencode.Format(), dir)
			if len(in.Reports) != 1 {
				t.Fatalf("%d sources", len(in.Reports))
			}
			r := in.Reports[0]
			if c.want == "" && r.Err != nil || c.want != "" && (r.Err == nil || !strings.Contains(r.Err.Error(), filepath.Join(dir, "opencode.db")+": "+c.want)) {
				t.Errorf("the error is %v", r.Err)
			}
			taken := 0
			for _, o := range in.Sessions() {
				if o.Verdict != exchange.Imported {
					t.Errorf("%+v", o)
				}
				taken++
			}
			if taken != c.taken {
				t.Errorf("%d sessions were taken, want %d", taken, c.taken)
			}
			for note := range strings.Lines(c.notes) {
				if got := exchangetest.Notes(r); !strings.Contains(got, strings.TrimSuffix(note, "\n")) {
					t.Errorf("the report lacks %q:\n%s", note, got)
				}
			}
		})
	}
}
