/** An account that counted in euros, and counts in cents. */
import { become, defineActor, migration, Schema } from "../../../../runtime/main.ts"

const inEuros = migration(
  { Open: { euros: Schema.Number } },
  ({ euros }) => ({ _tag: "Open", cents: Math.round(euros * 100) }),
  ({ cents }: { readonly cents: number }) => ({ _tag: "Open", euros: cents / 100 })
)

export const account = (writes: 1 | 2) =>
  defineActor("account", {
    state: { Open: { cents: Schema.Int } },
    migrations: [inEuros],
    writes,
    messages: { Pay: { cents: Schema.Int } },
    initial: { _tag: "Open", cents: 0 },
    table: {
      Open: {
        Pay: (state, { cents }) =>
          become({ _tag: "Open", cents: state.cents + cents }).reply(state.cents + cents)
      }
    }
  })
