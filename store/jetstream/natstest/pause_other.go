//go:build !unix

package natstest

import "errors"

func (p *process) pause(bool) error {
	return errors.New("natstest: this system cannot stop a process")
}
