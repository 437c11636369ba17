//go:build linux || darwin

package jsonl

import "golang.org/x/sys/unix"

// opened is a folder that files are looked at from.
type opened struct{ fd int }

func (o *opened) open(dir string) bool {
	var err error
	for {
		if o.fd, err = unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != unix.EINTR {
			return err == nil
		}
	}
}

func (o *opened) look(path string) (glance, error) {
	var st unix.Stat_t
	for {
		switch err := unix.Fstatat(o.fd, path, &st, 0); err {
		case nil:
			return glance{st.Mode&unix.S_IFMT == unix.S_IFREG, st.Mtim.Nano(), st.Size, st.Ino}, nil
		case unix.EINTR:
		default:
			return glance{}, err
		}
	}
}

func (o *opened) close() { unix.Close(o.fd) }
