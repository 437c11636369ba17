package config_test

import (
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop/internal/config"
)

func TestRetentionIsOffUnlessThePersonsOwnFileSaysOtherwise(t *testing.T) {
	if got := newPlace(t, "", "").mustLoad(t).Retention; got != (config.Retention{}) {
		t.Errorf("by itself: %+v", got)
	}
	c := newPlace(t, "[retention]\narchive_after = 30\ntrash_after = 300\npurge_after = 7\n", "").mustLoad(t)
	if want := (config.Retention{ArchiveAfter: 30, TrashAfter: 300, PurgeAfter: 7}); c.Retention != want {
		t.Errorf("got %+v, want %+v", c.Retention, want)
	}
	for _, v := range c.Values() {
		if v.Name == "retention.trash_after" && (v.Text != "300" || v.Origin != "~/.config/outcrop/config.toml:3") {
			t.Errorf("%+v", v)
		}
	}
	for _, bad := range []struct{ user, workspace, want string }{
		{"", "[retention]\ntrash_after = 1\n", "cannot be set by the file of a workspace"},
		{"[retention]\ntrash_after = -1\n", "", "retention.trash_after: -1 is no number of days"},
		{"[retention]\npurge_after = 86400\n", "", "retention.purge_after: 86400 is no number of days"},
		{"[retention]\ntrash_after_days = 1\n", "", `unknown member "retention.trash_after_days"`},
	} {
		if _, err := newPlace(t, bad.user, bad.workspace).load(); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%q, %q: %v", bad.user, bad.workspace, err)
		}
	}
}
