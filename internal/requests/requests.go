// Package requests finds the model calls in a log and makes their requests
// again.
//
// A log of this program has an outcrop/request for each attempt at a call:
// turn, step, number, the last event that the request was built from, and its
// digest. In other logs a call shows only by its chunks: the attempts of a step
// are separated by finish chunks, one that failed before its first chunk is not
// seen, and a step without any chunk counts as one attempt, built from what
// stands before its end.
//
// A request is the request header in force at that event and the messages that
// the surface derives to there. Both are spans of the log, so that its digest
// can be compared with the recorded one.
//
// The digests of a whole log are checked by doctor, in one pass.
package requests
