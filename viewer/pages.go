package viewer

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

// dist are the pages as the front end's build made them.
//
//go:embed all:web/dist
var dist embed.FS

// asset is one file of the pages.
type asset struct {
	body []byte
	etag string
	kind string
}

// kinds are the types of the files that a build can make.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/x-icon", ".woff2": "font/woff2",
	".json": "application/json", ".txt": "text/plain; charset=utf-8", ".webmanifest": "application/manifest+json",
}

// assets are all files by their path. There is no other way to a file, so none
// leads out of the folder.
var assets = sync.OnceValue(func() map[string]asset {
	all := map[string]asset{}
	root, err := fs.Sub(dist, "web/dist")
	if err != nil {
		return all
	}
	_ = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		kind := kinds[path.Ext(name)]
		if kind == "" {
			kind = "application/octet-stream"
		}
		sum := sha256.Sum256(b)
		all["/"+name] = asset{b, `"` + hex.EncodeToString(sum[:16]) + `"`, kind}
		return nil
	})
	return all
})

// page answers with a file of the pages.
func (v *Viewer) page(a *answerer) error {
	name := a.r.URL.Path
	if name == "/" {
		name = "/index.html"
	}
	file, ok := assets()[name]
	if !ok {
		return notFound("NOT_FOUND", "there is no page %.200s", a.r.URL.Path)
	}
	h := a.w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", file.etag)
	h.Set("Content-Type", file.kind)
	for tag := range strings.SplitSeq(a.r.Header.Get("If-None-Match"), ",") {
		if strings.TrimPrefix(strings.TrimSpace(tag), "W/") == file.etag {
			a.w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(file.body)))
	a.w.WriteHeader(http.StatusOK)
	if a.r.Method == http.MethodHead {
		return nil
	}
	_ = a.write(file.body) // an error is that nobody reads it
	return nil
}
