// Package group starts programs in a process group of their own, of which
// nothing stays: not when the program ends, not when it is killed, and, where
// there are process groups, not when this program is gone, killed outright for
// instance. Only a process that left the group by itself can stay.
//
// # Use
//
// Own before the command starts; NewGuard, and Watch as soon as it has started;
// Reap in the place of the command's Wait, then Release. Kill ends it before its
// time.
package group
