package viewer

import (
	"net/http"

	"github.com/outcrop-dev/outcrop/viewer/internal/facts"
)

// routes are the paths of the API.
func (v *Viewer) routes() {
	m := http.NewServeMux()
	get := func(path string, h handler) { m.Handle("GET "+path, h) }
	post := func(path string, h handler) { m.Handle("POST "+path, h) }
	const one = "/api/v1/sessions/{session}"

	get("/api/v1", v.about)
	get("/api/v1/live", v.liveList)
	get("/api/v1/search", v.searchAll)
	get("/api/v1/sessions", v.sessions)
	get("/api/v1/sessions/tree", v.tree)
	get("/api/v1/shelves/{shelf}", v.shelved)
	post("/api/v1/shelves/{shelf}/restore", v.restore)
	get("/api/v1/attachments/{id}", v.attachment)
	post("/api/v1/attachments", v.attach)
	post(tokenPath, v.trade)

	get(one, v.one(v.session))
	get(one+"/conversation", v.one(v.conversation))
	get(one+"/conversation/{seq}", v.one(v.item))
	get(one+"/events", v.one(v.events))
	get(one+"/events/{seq}", v.one(v.event))
	get(one+"/events/{seq}/raw", v.one(v.eventRaw))
	get(one+"/strata", v.one(v.strata))
	get(one+"/strata/table", v.one(v.strataTable))
	get(one+"/strata/node/{seq}", v.one(v.strataNode))
	get(one+"/band", v.one(v.band))
	get(one+"/band/at", v.one(v.bandAt))
	get(one+"/surface", v.one(v.surface))
	get(one+"/requests", v.one(v.requests))
	get(one+"/requests/{request}", v.one(v.request))
	get(one+"/numbers", v.one(v.numbers))
	get(one+"/find", v.one(v.find))
	get(one+"/export", v.export)
	get(one+"/live", v.one(v.live))

	for name, h := range v.changes() {
		post(one+"/"+name, h)
	}
	m.Handle("/api/", handler(func(a *answerer) error {
		return notFound("NOT_FOUND", "there is no %.200s in this API", a.r.Method+" "+a.r.URL.Path)
	}))
	m.Handle("/", handler(v.page))
	v.mux = m
}

// about says what this server is.
func (v *Viewer) about(a *answerer) error {
	veil := a.veil()
	running := []facts.Text{}
	var beside *facts.Text
	if id := v.beside.Load(); id != nil {
		t := facts.Text(*id)
		beside = &t
	}
	v.mu.Lock()
	for id := range v.running {
		running = append(running, facts.Text(id))
	}
	v.mu.Unlock()
	return a.ok(struct {
		facts.Schema
		Program  string       `json:"program"`
		Version  string       `json:"version"`
		Store    facts.Text   `json:"store"`
		Token    bool         `json:"token"`
		Writable bool         `json:"writable"`
		Search   bool         `json:"search"`
		Demo     string       `json:"demo"`
		Time     int64        `json:"time"`
		Running  []facts.Text `json:"running"`
		Beside   *facts.Text  `json:"beside"`
		Shelves  bool         `json:"shelves"`
		Exports  []exportForm `json:"exports"`
	}{facts.V1, "outcrop", v.o.Version, veil.Text(v.o.Store.Address()), v.access.token != "", v.o.Runner != nil, v.o.Search != nil, v.o.Demo, v.o.Now(), running, beside, v.o.Shelves != nil, v.exportForms()})
}
