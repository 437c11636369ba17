package tool

// Classifier is a tool some of whose calls can do more than its Class says: a
// file that is written may be one that another program runs or obeys. It
// answers at once and may look at the files; arguments that it does not
// understand have the class that asks most.
type Classifier interface {
	ClassOf(call Call) Class
}

// ClassOf is the class of one call of a tool.
func ClassOf(t Tool, call Call) Class {
	if c, ok := t.(Classifier); ok {
		return c.ClassOf(call)
	}
	return t.Class()
}
