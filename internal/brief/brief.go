// Package brief says in one line what an event of a log is about.
//
// Event is for any event, Parts and Node are for those that can stand on the
// surface: who speaks (user, assistant, result, context, checkpoint; a star
// marks a result that a history edit rewrote), and how what is said begins.
// Ending is for the end of a turn, Call and Arguments for a call of a tool.
//
// What is returned is safe to print and not cut, except that of Arguments,
// which is the data as it is. Nothing here fails: of odd data there is less to
// say.
package brief
