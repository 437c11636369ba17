// What the page remembers on this machine: taste, never content. A browser that
// keeps nothing is fine.
export const keep = {
  get(name: string): string | null {
    try {
      return localStorage.getItem("outcrop-" + name);
    } catch {
      return null;
    }
  },
  set(name: string, value: string): void {
    try {
      localStorage.setItem("outcrop-" + name, value);
    } catch {
      // then it is forgotten with the page
    }
  },
};
