/** The recorded operations of clients and their results, by kind of resource, for the checker. */
import type { HistoryOperation as Operation } from "../../runtime/testing/index.ts"
import type { MailboxInput, MailboxOutput } from "../histories/models/mailbox.ts"
import type { NotificationInput, NotificationOutput } from "../histories/models/notification.ts"
import type { RegistrationInput, RegistrationOutput } from "../histories/models/registration.ts"
import type { RowInput, RowOutput } from "../histories/models/row.ts"
import type { SessionInput, SessionOutput } from "../histories/models/session.ts"
import type { StoredInput, StoredOutput } from "../histories/models/stored.ts"
import type { Answer } from "./requests.ts"
import type { VersionedInput, VersionedOutput } from "./versioned.ts"

export interface Head {
  readonly resource: string
  readonly start: number
  readonly end: number
  readonly head: number
  /** The number of something from before. */
  readonly isRepeated: boolean
}

export class Records {
  readonly mailbox: Array<Operation<MailboxInput, MailboxOutput>> = []
  readonly notification: Array<Operation<NotificationInput, NotificationOutput>> = []
  readonly registration: Array<Operation<RegistrationInput, RegistrationOutput>> = []
  readonly session: Array<Operation<SessionInput, SessionOutput>> = []
  readonly content: Array<Operation<StoredInput, StoredOutput>> = []
  /** Each listing reads every customer. */
  readonly customer: Array<Operation<RowInput, RowOutput>> = []
  /** Operations on cabinets and on the settings of mailboxes. */
  readonly versioned: Array<Operation<VersionedInput, VersionedOutput>> = []
  /** Reported heads of mailboxes: a later read must not report a smaller one. */
  readonly heads: Array<Head> = []
  /** The last status of each document that was deposited with a key, by its text. */
  readonly keyedDeposits = new Map<string, number>()
  /** Answers that no state of the service allows. */
  readonly wrong: Array<string> = []
  /** Failures that running nodes returned. */
  readonly unanswered: Array<string> = []
  /** Numbers starts and ends, so that each has its own moment. */
  private moments = 0

  moment(): number {
    return ++this.moments
  }

  get count(): number {
    const { content, customer, mailbox, notification, registration, session, versioned } = this
    return [content, customer, mailbox, notification, registration, session, versioned]
      .reduce((sum, { length }) => sum + length, 0)
  }

  /** Records a mailbox's head that was reported now. */
  head(resource: string, start: number, head: number, isRepeated = false): void {
    this.heads.push({ resource, start, end: this.moment(), head, isRepeated })
  }

  /** Records an operation that has ended now. */
  note<Input, Output, Reply>(
    all: Array<Operation<Input, Output>>,
    what: { readonly client: string; readonly resource: string; readonly input: Input },
    start: number,
    answer: Answer<Reply>,
    outputOf: (reply: Reply) => Output | undefined
  ): void {
    const end = this.moment()
    switch (answer._tag) {
      case "Answered":
        all.push({ ...what, start, end, outcome: "ok", output: outputOf(answer.reply) })
        return
      case "Failed":
        all.push({ ...what, start, end, outcome: "fail" })
        return
      case "Unknown":
        all.push({ ...what, start, end, outcome: "info" })
    }
  }
}
