package jsonl

import (
	"io/fs"
	"path/filepath"
	"time"

	"github.com/outcrop-dev/outcrop/internal/faultfs"
)

// glance is what a listing of known sessions looks at of a file or folder.
type glance struct {
	regular bool
	changed int64 // Unix nanoseconds
	size    int64
	id      uint64 // see fileID
}

func (g glance) changedMillis() int64 { return time.Unix(0, g.changed).UnixMilli() }

// glancer looks at many files in few folders. On the real file system it does so
// from within the folder of a project where the system allows that, so that the
// path to it is not walked for each of them. It is for one goroutine; close it.
type glancer struct {
	disk    faultfs.FS
	project string // the folder that is open
	from    opened
	text    []byte // of the last stamp
}

// look looks at the session folder dir of a project, or at the file name in it; a
// symbolic link counts by what it leads to.
func (g *glancer) look(dir, name string) (glance, error) {
	if g.disk == faultfs.Real {
		project, session := filepath.Split(dir)
		if project != g.project {
			g.close()
			if g.from.open(project) {
				g.project = project
			}
		}
		if g.project != "" {
			if name != "" {
				session += string(filepath.Separator) + name
			}
			return g.from.look(session)
		}
	}
	fi, err := g.disk.Stat(filepath.Join(dir, name))
	if err != nil {
		return glance{}, err
	}
	return glanceOf(fi), nil
}

func glanceOf(fi fs.FileInfo) glance {
	return glance{fi.Mode().IsRegular(), fi.ModTime().UnixNano(), fi.Size(), fileID(fi)}
}

func (g *glancer) close() {
	if g.project != "" {
		g.from.close()
		g.project = ""
	}
}
