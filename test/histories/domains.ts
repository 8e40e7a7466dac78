/** Small input and output domains of each model, for random histories. */
import type { Model } from "../../runtime/testing/index.ts"
import { cabinet, type CabinetInput, type CabinetOutput } from "./models/cabinet.ts"
import { type MailboxInput, type MailboxOutput, openMailbox } from "./models/mailbox.ts"
import { notification, type NotificationInput, type NotificationOutput,
  type RecipientShown } from "./models/notification.ts"
import { register, type RegisterInput, type RegisterOutput } from "./models/register.ts"
import { registration, type RegistrationInput, type RegistrationOutput,
  type RegistrationStatus } from "./models/registration.ts"
import { session, type SessionInput, type SessionOutput, sessionSteps } from "./models/session.ts"

/** All inputs of a resource, and all outputs, in a small domain. */
export interface Domain<State, Input extends { readonly kind: string }, Output> {
  readonly model: Model<State, Input, Output>
  readonly inputs: ReadonlyArray<Input>
  readonly outputs: ReadonlyArray<Output>
}

const ids = ["x", "y"]
const numbers = [1, 2, 3]
const entries = ids.flatMap((id) => numbers.map((place) => ({ id, place })))
const pairs = entries.flatMap((one) => entries.map((other) => [one, other]))

export const mailboxes: Domain<unknown, MailboxInput, MailboxOutput> = {
  // The type of a model's state is private to the model.
  model: openMailbox as Model<unknown, MailboxInput, MailboxOutput>,
  inputs: [
    ...ids.map((id) => ({ kind: "deposit" as const, id })),
    ...numbers.flatMap((place) => [
      { kind: "remove" as const, place },
      { kind: "read" as const, place },
      { kind: "since" as const, place }
    ]),
    { kind: "list" },
    { kind: "list" },
    { kind: "latest" },
    { kind: "destroy" }
  ],
  outputs: [
    { _tag: "Done" },
    { _tag: "Gone" },
    ...numbers.map((place) => ({ _tag: "Deposited" as const, place })),
    ...[[], ...entries.map((entry) => [entry]), ...pairs].map((listed) => ({
      _tag: "Listed" as const,
      entries: listed
    })),
    ...[undefined, ...entries].map((entry) => ({ _tag: "Latest" as const, entry })),
    ...ids.map((id) => ({ _tag: "Found" as const, id }))
  ]
}

export const registers: Domain<unknown, RegisterInput, RegisterOutput> = {
  // As above.
  model: register as Model<unknown, RegisterInput, RegisterOutput>,
  inputs: [
    { kind: "read" },
    { kind: "read" },
    { kind: "write", value: 1 },
    { kind: "write", value: 2 },
    { kind: "exchange", from: 0, to: 1 },
    { kind: "exchange", from: 1, to: 2 }
  ],
  outputs: [0, 1, 2]
}

export const sessions: Domain<unknown, SessionInput, SessionOutput> = {
  // As above.
  model: session as Model<unknown, SessionInput, SessionOutput>,
  inputs: [
    { kind: "begin" },
    { kind: "begin" },
    ...sessionSteps.flatMap((step) => [
      { kind: "answer" as const, step, text: "a" },
      { kind: "recorded" as const, step }
    ]),
    { kind: "show" },
    { kind: "delete" }
  ],
  outputs: [
    ...[
      "Begun",
      "Recorded",
      "Overwritten",
      "Cast",
      "TooEarly",
      "Over",
      "Deleted",
      "Gone"
    ]
      // Each of these is an output by itself.
      .map((_tag) => ({ _tag }) as SessionOutput),
    { _tag: "Answer", text: "a" },
    ...([...sessionSteps, "crossed", "cast"] as const)
      .map((status) => ({ _tag: "Shown" as const, status }))
  ]
}

const recipients: ReadonlyArray<RecipientShown> = [
  { status: "waiting", attempts: 0 },
  { status: "retry", attempts: 1 },
  { status: "success", attempts: 1 },
  { status: "failed", attempts: 2 }
]
export const notifications: Domain<unknown, NotificationInput, NotificationOutput> = {
  // As above.
  model: notification as Model<unknown, NotificationInput, NotificationOutput>,
  inputs: [
    { kind: "queue", recipients: 1 },
    { kind: "show" },
    { kind: "show" },
    { kind: "retry" },
    { kind: "delete" }
  ],
  outputs: [
    { _tag: "Done" },
    { _tag: "Gone" },
    ...recipients.map((one) => ({ _tag: "Shown" as const, recipients: [one] }))
  ]
}

const statuses: ReadonlyArray<RegistrationStatus> = ["unverified", "active", "suspended"]
export const registrations: Domain<unknown, RegistrationInput, RegistrationOutput> = {
  // As above.
  model: registration as Model<unknown, RegistrationInput, RegistrationOutput>,
  inputs: [
    { kind: "register", cursor: 1 },
    { kind: "show" },
    { kind: "show" },
    { kind: "lift" },
    { kind: "delete" }
  ],
  outputs: [
    { _tag: "Done" },
    { _tag: "Gone" },
    ...statuses.flatMap((status) =>
      numbers.map((cursor) => ({ _tag: "Shown" as const, status, cursor }))
    )
  ]
}

export const cabinets: Domain<unknown, CabinetInput, CabinetOutput> = {
  // As above.
  model: cabinet as Model<unknown, CabinetInput, CabinetOutput>,
  inputs: [
    ...ids.map((id) => ({ kind: "deposit" as const, id })),
    { kind: "remove", id: "x" },
    ...[[], ["x"], ["y"]].map((known) => ({ kind: "poll" as const, since: known.length, known }))
  ],
  outputs: [
    { _tag: "Done" },
    ...[[], ["x"], ["y"], ["x", "y"], ["y", "x"]].flatMap((shown) =>
      [0, 1].map((cursor) => ({ _tag: "Polled" as const, ids: shown, cursor }))
    )
  ]
}
