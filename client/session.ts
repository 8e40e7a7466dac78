/** Sessions (protocol §2): a question is read, answered, and the next one read, to the end. */
import { pageEntriesMax, searchedSessionsMax } from "./limits.ts"
import { type JsonObject, NotFound, optionalText, ProblemError, RemoteResource, textOf,
  unexpected } from "./transport/index.ts"

/** An answer: text, or the URI of a text that the service reads. */
export type SessionAnswer = string | { readonly href: string }

/** The state of a session. */
export interface SessionProgress {
  readonly href: string
  /** The question; at the end the last message. */
  readonly says: string
  /** The step of the question; undefined when the session is over. */
  readonly step: string | undefined
  readonly over: boolean
  /** The result, when it is over. */
  readonly outcome: "crossed" | "cast" | undefined
}

/** One line of the list of sessions. */
export interface ListedSession {
  readonly href: string
  /** Its current step, `crossed` or `cast`. */
  readonly status: string
  readonly started: string
}

export const listedSessionOf = (document: JsonObject): ListedSession => ({
  href: textOf(document, "href"),
  status: textOf(document, "status"),
  started: textOf(document, "started")
})

/** A session, by its URI. */
export class Session extends RemoteResource {
  /** The current question, or the outcome. */
  async state(signal?: AbortSignal): Promise<SessionProgress> {
    return this.stateOf(await this.transport.get(this.href, signal), undefined)
  }

  /**
   * Answers the current question, or the question of an earlier `step` again, and returns the next
   * state. A wrong last answer is an outcome, not an error. Fails with Conflict or another
   * ProblemError for an answer that the service does not accept.
   */
  async answer(
    answer: SessionAnswer,
    { signal, step }: {
      readonly step?: string | undefined
      readonly signal?: AbortSignal | undefined
    } = {}
  ): Promise<SessionProgress> {
    const current = step ?? (await this.state(signal)).step
    const { attempts, document, status } = await this.transport.put(
      `${this.href}/${current ?? unexpected("the session is over")}`,
      typeof answer === "string" ? { text: answer } : { href: answer.href },
      { acceptedStatuses: [405, 406], signal }
    )
    if (status === 200 || status === 201) {
      return this.stateOf(document, document["method"] === "GET" ? "crossed" : undefined)
    }
    const state = await this.state(signal)
    // This answer ended the session, or an earlier attempt whose response was lost.
    if (state.over && (status === 406 || attempts > 1)) return state
    throw new ProblemError({
      status,
      type: optionalText(document, "type") ?? "about:blank",
      title: optionalText(document, "title") ?? "Not accepted",
      detail: optionalText(document, "detail") ?? optionalText(document, "p")
    })
  }

  /** Answers each question with the result of `answerer`, until the session is over. */
  async walk(
    answerer: (question: string, state: SessionProgress) => SessionAnswer | Promise<SessionAnswer>,
    signal?: AbortSignal
  ): Promise<SessionProgress> {
    let state = await this.state(signal)
    while (state.step !== undefined) {
      const answer = await answerer(state.says, state)
      state = await this.answer(answer, { step: state.step, signal })
    }
    return state
  }

  /** An earlier answer: its text, or its URI. */
  async answered(step: string): Promise<SessionAnswer> {
    const document = await this.transport.get(`${this.href}/${step}`)
    const href = optionalText(document, "href")
    return href === undefined ? optionalText(document, "text") ?? "" : { href }
  }

  private async stateOf(
    document: JsonObject,
    outcome: "crossed" | undefined
  ): Promise<SessionProgress> {
    const over = textOf(document, "method") === "GET"
    const uri = textOf(document, "uri")
    return {
      href: this.href,
      says: textOf(document, "p"),
      step: over ? undefined : uri.slice(uri.lastIndexOf("/") + 1),
      over,
      outcome: over ? outcome ?? await this.findOutcome() : undefined
    }
  }

  /** Its own document does not have the outcome, but the list of sessions does. */
  private async findOutcome(): Promise<"crossed" | "cast"> {
    const { url } = this.transport.locate(this.href)
    let left = searchedSessionsMax
    const newest = this.transport
      .list("/sessions", "session", listedSessionOf, { pageSize: pageEntriesMax })
    for await (const { href, status } of newest) {
      if (this.transport.locate(href).url === url) {
        return status === "crossed" || status === "cast"
          ? status
          : unexpected("the session is not over")
      }
      if (--left === 0) break
    }
    const detail = `the session is not among the last ${searchedSessionsMax}`
    throw new NotFound({ status: 404, title: "Not listed", detail })
  }
}
