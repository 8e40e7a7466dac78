/** Reading bodies whole, up to a bound. */

/** All bytes of a body; undefined, and the rest left unread, when there are more than the bound. */
export const readBytes = async (
  body: ReadableStream<Uint8Array> | null,
  bytesMax: number
): Promise<Uint8Array | undefined> => {
  const chunks: Array<Uint8Array> = []
  let length = 0
  const reader = body?.getReader()
  for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) {
    length += read.value.length
    if (length > bytesMax) {
      await reader?.cancel()
      return undefined
    }
    chunks.push(read.value)
  }
  const bytes = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.length
  }
  return bytes
}
