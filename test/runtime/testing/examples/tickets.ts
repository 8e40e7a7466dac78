import { become, type Behavior, refuse, stay } from "../../../../runtime/index.ts"
import { Effect } from "effect"

const seats = 10

interface Concert {
  readonly _tag: "Open"
  /** Who has a seat: each buyer has one. */
  readonly sold: ReadonlyArray<string>
}

export type TicketMessage =
  | { readonly _tag: "Buy"; readonly buyer: string }
  | { readonly _tag: "Read" }

/** Messages that buy and read, replies with the number of sold seats, and no effects. */
type Tickets = Behavior<Concert, TicketMessage, number, never>

const table: Tickets["table"] = {
  Open: {
    Buy: ({ sold }, { buyer }) => {
      if (sold.includes(buyer)) return stay<Concert>().reply(sold.length)
      if (sold.length === seats) return refuse("SoldOut")
      return become<Concert>({ _tag: "Open", sold: [...sold, buyer] }).reply(sold.length + 1)
    },
    Read: ({ sold }) => stay<Concert>().reply(sold.length)
  }
}

export const concert: Tickets = {
  kind: "concert",
  initial: { _tag: "Open", sold: [] },
  table,
  encode: (state) => JSON.stringify(state),
  decode: (text) => JSON.parse(text) as Concert, // written by encode
  decodeMessage: (input) => input as TicketMessage, // a real one checks it, with Schema
  timerMessage: { _tag: "Read" },
  perform: () => Effect.void
}
