package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/outcrop-dev/outcrop"
)

// Last is the target that stands for the newest session.
const Last = "last"

// Resolve finds the id that a target names: the id itself, the only id that
// starts with it, or Last, the newest session that is no subagent's and whose
// header can be read. Errors wrap outcrop.ErrNotFound and ErrAmbiguous.
func Resolve(ctx context.Context, st Store, target string) (string, error) {
	if target == "" {
		return "", notFound("find", "", "no session is named", "give an id, the start of one, or "+Last)
	}
	if target != Last {
		sd, err := st.Read(ctx, target)
		if err == nil {
			return target, sd.Close()
		}
		if !errors.Is(err, outcrop.ErrNotFound) {
			// It is there; what is wrong with it is for the reader to say.
			return target, nil
		}
	}
	infos, err := st.List(ctx, ListOptions{})
	if err != nil {
		return "", err
	}
	if target == Last {
		for _, in := range infos {
			if in.ID != "" && in.Header.Origin != "subagent" && in.Header.ID != "" {
				return in.ID, nil
			}
		}
		if len(infos) > 0 {
			return "", notFound("find", "", "there is no session in "+st.Address()+" that can be read, or only subagents'", "outcrop ls says what is there")
		}
		return "", notFound("find", "", "there is no session in "+st.Address(), "outcrop run starts one")
	}
	var fits []string
	for _, in := range infos {
		if strings.HasPrefix(in.ID, target) {
			fits = append(fits, in.ID)
		}
	}
	switch len(fits) {
	case 0:
		return "", notFound("find", target, fmt.Sprintf("no session %q in %s", target, st.Address()), "outcrop ls lists them")
	case 1:
		return fits[0], nil
	}
	const show = 4
	names := strings.Join(fits[:min(len(fits), show)], ", ")
	if len(fits) > show {
		names += fmt.Sprintf(" and %d more", len(fits)-show)
	}
	return "", &outcrop.Error{Op: "find", Session: target, Seq: -1, Offset: -1, Err: ErrAmbiguous,
		Msg: fmt.Sprintf("%q is the start of %s", target, names), Hint: "give more of the id"}
}
