/** Streams of archives and files. */

/** Passes the items on, and calls `onItem` with each before it passes. */
export async function* observed<A>(
  source: AsyncIterable<A>,
  onItem: (item: A) => void
): AsyncGenerator<A, void, void> {
  for await (const item of source) {
    onItem(item)
    yield item
  }
}
