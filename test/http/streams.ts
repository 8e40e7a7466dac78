/** Reading live streams (server-sent events) event by event. */

export interface StreamEvent {
  readonly event: string
  readonly id: string
  readonly data: string
}

/**
 * Opens the stream of a resource with these credentials, or with none of Basic if they are empty;
 * `next` returns undefined at its end.
 */
export const stream = async (
  href: string,
  basic: string,
  headers: Readonly<Record<string, string>> = {}
) => {
  const cut = new AbortController()
  const authorization = `Basic ${Buffer.from(basic).toString("base64")}`
  const credentials = basic === "" ? {} : { authorization }
  const response = await fetch(href, {
    headers: { accept: "text/event-stream", ...credentials, ...headers },
    signal: cut.signal
  })
  if (response.body === null) throw new Error(`no stream: ${response.status}`)
  const reader = response.body.getReader()
  let text = ""
  const next = async (): Promise<StreamEvent | undefined> => {
    for (;;) {
      const end = text.indexOf("\n\n")
      if (end >= 0) {
        const lines = text.slice(0, end).split("\n")
        text = text.slice(end + 2)
        const of = (name: string) =>
          lines.filter((line) => line.startsWith(`${name}: `))
            .map((line) => line.slice(name.length + 2)).join("\n")
        if (of("event") !== "") return { event: of("event"), id: of("id"), data: of("data") }
        continue
      }
      const { done, value } = await reader.read()
      if (done) return
      text += Buffer.from(value).toString()
    }
  }
  return { response, next, close: () => cut.abort() }
}
