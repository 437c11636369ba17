package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/outcrop-dev/outcrop"
)

// Finding is something about a realm that breaks the promise, or may.
type Finding struct {
	Where string // a stream, a bucket, a server
	What  string
	// Warning: the promise holds all the same, now.
	Warning bool
	Hint    string // what can be done about it, where What does not say it; or ""
}

// Report is what Check found.
type Report struct {
	Realm    Realm
	Findings []Finding
	Messages uint64
	Bytes    uint64
	Sessions uint64
	Servers  []string // that have a part of the realm
}

const noLeader = "it has no leader now"

// OK reports whether nothing breaks the promise.
func (r *Report) OK() bool {
	return !slices.ContainsFunc(r.Findings, func(f Finding) bool { return !f.Warning })
}

// judge says why a stream of the realm cannot keep what is acknowledged.
func (r *Realm) judge(c *natsjs.StreamConfig, subject string) (bad []string) {
	say := func(broken bool, format string, args ...any) {
		if broken {
			bad = append(bad, fmt.Sprintf(format, args...))
		}
	}
	say(c.Storage != natsjs.FileStorage, "it is kept in memory: a log has to be on disks")
	say(c.Retention != natsjs.LimitsPolicy, "its retention is by interest or as a queue: messages that somebody took would go")
	say(c.MaxAge != 0, "it forgets messages after %s", c.MaxAge)
	say(c.MaxMsgs > 0, "it holds at most %d messages", c.MaxMsgs)
	say(c.Replicas < r.Replicas, "it has %d replicas, the realm was made with %d", c.Replicas, r.Replicas)
	say(c.PersistMode != natsjs.DefaultPersistMode, "it acknowledges before it writes (persist_mode async)")
	say(c.NoAck, "it acknowledges nothing")
	say(c.Sealed, "it is sealed: nothing can be appended")
	say(c.Mirror != nil || len(c.Sources) > 0, "it takes messages from another stream")
	say(c.SubjectTransform != nil, "it stores messages under other subjects")
	say(c.AllowMsgTTL, "messages may have a time to live")
	say(c.MaxMsgSize > 0 && c.MaxMsgSize < minPayload, "it takes messages of at most %d bytes; %d is the least that is needed", c.MaxMsgSize, minPayload)
	if subject != "" { // a stream of logs
		say(c.MaxMsgsPerSubject > 0, "it holds at most %d messages of a session", c.MaxMsgsPerSubject)
		say(c.DenyPurge, "nothing can be removed from it")
		say(c.Discard != natsjs.DiscardNew, "when it is full it discards old messages")
		say(len(c.Subjects) != 1 || c.Subjects[0] != subject, "its subjects are %s and not %s", strings.Join(c.Subjects, ", "), subject)
	}
	return bad
}

// Check looks at everything that a realm consists of. With sys, which has rights
// on the system account, every server is asked whether it syncs each write, and
// the verdict is recorded.
func (s *Store) Check(ctx context.Context, sys *Auth) (Report, error) {
	lk, err := s.link(ctx)
	if err != nil {
		return Report{}, err
	}
	r, err := s.check(ctx, lk)
	if err != nil {
		return r, s.failed("check", "", err)
	}
	if sys != nil {
		if err := s.askServers(ctx, lk, *sys, &r); err != nil {
			return r, err
		}
	}
	switch r.Realm.Sync.State {
	case SyncNotAlways:
		for _, sv := range r.Realm.Sync.Servers {
			if !sv.Always {
				r.Findings = append(r.Findings, Finding{Where: "server " + sv.Name, What: "it acknowledges writes before they are on its disk: set sync_interval: always in its jetstream block"})
			}
		}
	case SyncUnknown:
		r.Findings = append(r.Findings, Finding{Where: "servers", Warning: true, What: "it is unknown whether they sync each write: check with rights on the system account"})
	}
	return r, nil
}

// gone is the finding about a stream that is missing.
func (r *Realm) gone(address, stream string) Finding {
	again := fmt.Sprintf("outcrop realm init %s --streams %d --lease %s", address, r.Streams, r.Lease)
	switch {
	case r.Replicas == 1:
		again += " --single"
	case r.Replicas != defaultReplicas:
		again += fmt.Sprintf(" --replicas %d", r.Replicas)
	}
	f := Finding{Where: "stream " + stream, What: "it is missing"}
	switch stream {
	case "KV_" + workersBucket(r.Name):
		f.What += ": no session can be opened"
		f.Hint = again + " makes it anew: it held nothing that lasts"
	case "OBJ_" + bucket(r.Name):
		f.What += ": attachments, and texts of long messages, cannot be read"
		f.Hint = "restore it from a backup of the servers; when there is none, " + again + " makes an empty one, and outcrop convert --all puts back the sessions that another store has"
	default:
		f.What += ": the sessions in it can be neither read nor listed"
		f.Hint = "restore it from a backup of the servers before outcrop realm gc runs again; when there is none, " + again + " makes an empty one, and outcrop convert --all puts back the sessions that another store has"
	}
	return f
}

func (s *Store) check(ctx context.Context, lk *link) (Report, error) {
	realm, err := s.readRealm(ctx, lk)
	if err != nil {
		return Report{}, err
	}
	r := Report{Realm: realm}
	servers := map[string]bool{}
	add := func(where, what string, warning bool) {
		r.Findings = append(r.Findings, Finding{Where: where, What: what, Warning: warning})
	}
	look := func(stream, subject string, log bool) error {
		st, err := lk.js.Stream(ctx, stream)
		if errors.Is(err, natsjs.ErrStreamNotFound) {
			r.Findings = append(r.Findings, realm.gone(s.Address(), stream))
			return nil
		}
		if err != nil {
			return err
		}
		in := st.CachedInfo()
		if stream == "KV_"+workersBucket(realm.Name) {
			if in.Config.MaxAge != realm.Lease {
				add("stream "+stream, fmt.Sprintf("keys of workers expire after %s, and a lease is %s: sessions are taken over too early or too late, and lose nothing", in.Config.MaxAge, realm.Lease), true)
			}
			in.Config.MaxAge = 0 // the only stream that has to forget
		}
		for _, what := range realm.judge(&in.Config, subject) {
			add("stream "+stream, what, false)
		}
		if log {
			r.Messages += in.State.Msgs
			r.Sessions += in.State.NumSubjects
		}
		r.Bytes += in.State.Bytes
		if c := in.Cluster; c != nil && c.Name != "" {
			if c.Leader == "" {
				add("stream "+stream, noLeader, false)
			}
			servers[c.Leader] = true
			for _, p := range c.Replicas {
				servers[p.Name] = true
				switch {
				case p.Offline:
					add("stream "+stream, "the replica on "+p.Name+" is offline", true)
				case !p.Current:
					add("stream "+stream, fmt.Sprintf("the replica on %s is %d operations behind", p.Name, p.Lag), true)
				}
			}
		}
		return nil
	}
	for shard := range realm.Streams {
		if err := look(realm.stream(shard), realm.subjects(shard, "*"), true); err != nil {
			return r, err
		}
	}
	for _, stream := range []string{"KV_" + bucket(realm.Name), "KV_" + workersBucket(realm.Name), lk.objectStream()} {
		if err := look(stream, "", false); err != nil {
			return r, err
		}
	}
	if n := lk.nc.MaxPayload(); n < minPayload {
		add("servers", fmt.Sprintf("they take messages of at most %d bytes; %d is the least that is needed", n, minPayload), false)
	}
	delete(servers, "")
	r.Servers = slices.Sorted(maps.Keys(servers))
	if len(r.Servers) == 0 { // one server without a cluster
		r.Servers = []string{lk.nc.ConnectedServerName()}
	}
	return r, nil
}

const (
	// serversWithin is how long the answers of all servers are waited for.
	serversWithin = 3 * time.Second
	pingJSZ       = "$SYS.REQ.SERVER.PING.JSZ"
)

// askServers asks every server for its settings and records what they say.
func (s *Store) askServers(ctx context.Context, lk *link, sys Auth, r *Report) error {
	nc, _, err := s.dialAs(ctx, sys)
	if err != nil {
		return err
	}
	defer nc.Close()
	inbox := nc.NewInbox()
	in := make(chan *nats.Msg, 1024)
	sub, err := nc.ChanSubscribe(inbox, in)
	if err != nil {
		return s.failed("check", "", err)
	}
	defer sub.Unsubscribe()
	if err := nc.PublishRequest(pingJSZ, inbox, []byte(`{"config":true}`)); err != nil {
		return s.failed("check", "", err)
	}
	said := map[string]bool{}
	late := time.NewTimer(serversWithin)
	defer late.Stop()
	for waiting := true; waiting && !all(r.Servers, said); {
		select {
		case m := <-in:
			if m.Header.Get("Status") == "503" {
				return s.refused("check", "the servers do not answer questions about themselves: these credentials have no rights on the system account", "give those of a user of the system account")
			}
			var a struct {
				Server struct {
					Name string `json:"name"`
				} `json:"server"`
				Data struct {
					Config struct {
						SyncAlways bool `json:"sync_always"`
					} `json:"config"`
				} `json:"data"`
			}
			if json.Unmarshal(m.Data, &a) == nil && a.Server.Name != "" {
				said[a.Server.Name] = a.Data.Config.SyncAlways
			}
		case <-late.C:
			waiting = false
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	v := SyncVerdict{State: SyncAlways, Checked: s.now()}
	for _, name := range r.Servers {
		always, ok := said[name]
		switch {
		case !ok:
			r.Findings = append(r.Findings, Finding{Where: "server " + name, Warning: true, What: "it did not answer: whether it syncs each write is unknown"})
			if v.State == SyncAlways {
				v.State = SyncUnknown
			}
			continue
		case !always:
			v.State = SyncNotAlways
		}
		v.Servers = append(v.Servers, ServerSync{Name: name, Always: always})
	}
	r.Realm.Sync = v
	return s.recordVerdict(ctx, lk, v)
}

func all(names []string, said map[string]bool) bool {
	for _, n := range names {
		if _, ok := said[n]; !ok {
			return false
		}
	}
	return true
}

// recordVerdict puts a verdict into the realm's record, where every opening sees
// it.
func (s *Store) recordVerdict(ctx context.Context, lk *link, v SyncVerdict) error {
	name := bucket(s.addr.Name)
	kv, err := lk.js.KeyValue(ctx, name)
	if err != nil {
		return s.failed("check", "", err)
	}
	put := func(r Realm, seq uint64) error {
		return s.undenied(ctx, func(ctx context.Context) error {
			_, err := kv.Update(ctx, recordKey, r.record(), seq)
			return err
		})
	}
	for range takeTries {
		raw, err := lk.last(ctx, "KV_"+name, "$KV."+name+"."+recordKey)
		if err != nil {
			return s.failed("check", "", err)
		}
		realm, err := parseRealm(raw.Data, s.addr.Name)
		if err != nil {
			return s.problem("check", outcrop.ErrUnsupported, err.Error(), "")
		}
		realm.Sync = v
		if err = put(realm, raw.Seq); err == nil {
			return nil
		}
		if !conflict(err) {
			return s.failed("check", "", err)
		}
	}
	return s.problem("check", errors.New("the record of the realm is written by others all the time"), "", "try again")
}

// mayWrite refuses a stream that cannot keep what it acknowledges. It is asked
// once for each stream, before the first message goes to it.
func (lk *link) mayWrite(in *natsjs.StreamInfo, subject string) error {
	bad := lk.realm.judge(&in.Config, subject)
	if len(bad) == 0 {
		return nil
	}
	return lk.s.refused("append", "stream "+strconv.Quote(in.Config.Name)+" cannot keep what it acknowledges: "+strings.Join(bad, "; "), "outcrop realm check says more")
}
