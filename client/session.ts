/** Sessions (protocol §2): a question is read, answered, and the next one read, to the end. */
import { removeResource } from "./content.ts"
import { sessionPagesMax } from "./limits.ts"
import { type HttpTransport, type JsonObject, type ListingOptions, listOf, newKey, NotFound,
  optionalText, pagesOf, parseObject, ProblemError, textOf, unexpected,
  withQuery } from "./transport/index.ts"

/** What is answered: words, or the URI of words that the service reads. */
export type SessionAnswer = string | { readonly href: string }

/** How a session stands. */
export interface SessionProgress {
  readonly href: string
  /** The question; at the end what is said last. */
  readonly says: string
  /** The step that an answer is for; undefined when it is over. */
  readonly step: string | undefined
  /** Whether it is over, and how it ended. */
  readonly over: boolean
  readonly outcome: "crossed" | "cast" | undefined
}

/** One line of the list of sessions. */
export interface ListedSession {
  readonly href: string
  /** The step that it stands at, `crossed` or `cast`. */
  readonly status: string
  readonly started: string
}

const asJson = { "content-type": "application/json" }

/** Sessions, newest first. */
export async function* listSessions(
  transport: HttpTransport,
  { pageSize: limit, signal }: ListingOptions = {}
): AsyncGenerator<ListedSession, void, void> {
  for await (const page of pagesOf(transport, withQuery("/sessions", { limit }), { signal })) {
    for (const one of listOf(page, "session")) {
      yield {
        href: textOf(one, "href"),
        status: textOf(one, "status"),
        started: textOf(one, "started")
      }
    }
  }
}

/** A session, by its URI. */
export class Session {
  readonly href: string
  private readonly transport: HttpTransport

  constructor(transport: HttpTransport, href: string) {
    this.transport = transport
    this.href = href
  }

  /** The question that it stands at, or how it ended. */
  async state(signal?: AbortSignal): Promise<SessionProgress> {
    const { document } = await this.transport.json({ method: "GET", uri: this.href, signal })
    return this.stateOf(document, undefined)
  }

  /**
   * Answers the question that the session stands at, or that of an earlier `step` anew, and gives
   * what comes next. A wrong last answer is an outcome and no error. Words that the bridge-keeper
   * does not take, Conflict or another ProblemError.
   */
  async answer(
    given: SessionAnswer,
    { signal, step }: {
      readonly step?: string | undefined
      readonly signal?: AbortSignal | undefined
    } = {}
  ): Promise<SessionProgress> {
    const at = step ?? (await this.state(signal)).step
    const { attempts, status, text } = await this.transport.text({
      method: "PUT",
      uri: `${this.href}/${at ?? unexpected("the session is over")}`,
      headers: asJson,
      body: JSON.stringify(typeof given === "string" ? { "#text": given } : { href: given.href }),
      also: [405, 406],
      signal
    })
    const said = parseObject(text)
    if (status === 200 || status === 201) {
      return this.stateOf(said, said["method"] === "GET" ? "crossed" : undefined)
    }
    const state = await this.state(signal)
    // Over by this answer, or by an attempt of it whose own answer was lost.
    if (state.over && (status === 406 || attempts > 1)) return state
    throw new ProblemError({
      status,
      type: optionalText(said, "type") ?? "about:blank",
      title: optionalText(said, "title") ?? "Not accepted",
      detail: optionalText(said, "detail") ?? optionalText(said, "p"),
      instance: undefined,
      retryAfterMs: undefined,
      extensions: {}
    })
  }

  /** Answers question after question, each with what `answerer` says to it, to the end. */
  async walk(
    answerer: (question: string, state: SessionProgress) => SessionAnswer | Promise<SessionAnswer>,
    signal?: AbortSignal
  ): Promise<SessionProgress> {
    let state = await this.state(signal)
    while (state.step !== undefined) {
      const given = await answerer(state.says, state)
      state = await this.answer(given, { step: state.step, signal })
    }
    return state
  }

  /** An answer that was given: its words, or the URI that was given instead. */
  async answered(step: string): Promise<SessionAnswer> {
    const { document } = await this.transport.json({ method: "GET", uri: `${this.href}/${step}` })
    const href = optionalText(document, "href")
    return href === undefined ? optionalText(document, "#text") ?? "" : { href }
  }

  delete(): Promise<void> {
    return removeResource(this.transport, this.href)
  }

  private async stateOf(
    document: JsonObject,
    known: "crossed" | undefined
  ): Promise<SessionProgress> {
    const over = textOf(document, "method") === "GET"
    const uri = textOf(document, "uri")
    return {
      href: this.href,
      says: textOf(document, "p"),
      step: over ? undefined : uri.slice(uri.lastIndexOf("/") + 1),
      over,
      outcome: over ? known ?? await this.outcome() : undefined
    }
  }

  /** How it ended: its own document shows only that it did. */
  private async outcome(): Promise<"crossed" | "cast"> {
    const wanted = this.transport.locate(this.href).at
    let page = 0
    for await (const { session } of pagesOf(this.transport, "/sessions?limit=1000")) {
      for (const one of listOf({ session: session ?? [] }, "session")) {
        const status = textOf(one, "status")
        if (this.transport.locate(textOf(one, "href")).at !== wanted) continue
        return status === "crossed" || status === "cast" ? status : unexpected("it goes on")
      }
      if (++page >= sessionPagesMax) break
    }
    throw new NotFound({
      status: 404,
      type: "about:blank",
      title: "Not listed",
      detail: `the session is not among the last ${sessionPagesMax * 1000}`,
      instance: undefined,
      retryAfterMs: undefined,
      extensions: {}
    })
  }
}

/** B1, B2: comes to the bridge, and is asked the first question. */
export const beginSession = async (
  transport: HttpTransport,
  signal?: AbortSignal
): Promise<Session> => {
  const entry = await transport.json({ method: "GET", uri: "/cross_bridge", signal })
  const { headers } = await transport.text({
    method: "POST",
    uri: textOf(entry.document, "uri"),
    headers: { ...asJson, "idempotency-key": newKey() },
    body: JSON.stringify({ continue: "true" }),
    signal
  })
  return new Session(transport, headers.get("location") ?? unexpected("no Location"))
}
