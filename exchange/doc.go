// Package exchange takes over what other programs keep of their agents'
// sessions.
//
//	file -> Format -> Source -> Session -> Builder -> records -> store
//
// A Format knows the files of one program and opens each as a Source. A Source
// yields its sessions, parents before children. A Session gives its history to
// a Builder, in order, as prompts, replies, results, compactions; the Builder
// makes a valid log of it, whatever the history lacks. The Importer stores the
// logs, finds what was imported before, and goes on with what has grown.
//
// # What a session becomes
//
// An own session (header member outcrop:1) whose header names its origin in the
// member importedFrom: {program, version?, session}. Times, working directory,
// models, usage and titles are those of the source. A compaction of the program
// becomes a compaction bracket: the log still has what it covered. Branches and
// forks become sessions that begin with the events they share, sub-agents
// sessions with the origin subagent. The event outcrop/import ends what was
// taken over, each time some was, and says how much and from where.
//
// # The same again
//
// The same source always gives the same id and the same bytes. So a second
// import finds what is there by comparing events, whoever made them; what it
// remembers from one run to the next (State) only saves time. A source that has
// grown is gone on with: what is new is appended, if the session still is what
// the import left. When it is not, or the source tells another story now, a new
// session is made beside it. Nothing that is stored changes.
//
// # What is lost
//
// The Report of a source counts what was kept, mapped to another shape and
// dropped, by kind and reason, with the line of the first case. A call without
// a result gets one that says so; a result without a call is kept as text.
//
// Sources are only read. What is held of one is an index and the surface of the
// session at hand, not its text.
package exchange
