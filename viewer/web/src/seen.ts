// Streams only while somebody looks. A browser gives a server six connections
// for all its pages: pages in the background, or kept for the way back, would
// use them up. What a stream misses comes when it is opened again.

const unseen = 5_000; // ms in the background until a stream is closed

/** calls open when the page is looked at and close when not; gives a function
 * that ends it. open is not called by this call itself. */
export function whileSeen(open: () => void, close: () => void): () => void {
  let timer = 0;
  let shut = false;
  const leave = () => {
    clearTimeout(timer);
    shut = true;
    close();
  };
  const back = () => {
    clearTimeout(timer);
    if (!shut) return;
    shut = false;
    open();
  };
  const turn = () => {
    clearTimeout(timer);
    if (document.hidden) timer = window.setTimeout(leave, unseen);
    else back();
  };
  document.addEventListener("visibilitychange", turn);
  addEventListener("pagehide", leave);
  addEventListener("pageshow", back);
  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", turn);
    removeEventListener("pagehide", leave);
    removeEventListener("pageshow", back);
  };
}
