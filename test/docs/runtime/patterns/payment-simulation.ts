/** Payments on clusters that crash, with a bank that is not always there. */
import { noServices, request, simulate } from "../../../../runtime/testing/index.ts"
import { payment } from "./payment.ts"

/** Cents by key: the bank charges a key once. */
type Bank = Map<string, number>

/** The payments as clients see them: their effects run in the nodes only, with the bank. */
const payments = payment(noServices())

/** Rejects with a report of the first seed that fails. */
export const simulatePayments = (seeds: number) =>
  simulate<Bank>({
    services: () => new Map(),
    behaviors: (host, bank) => [
      payment((key, cents) =>
        host.outside("bank", () => {
          if (!bank.has(key)) bank.set(key, cents)
          return `receipt-${key}`
        })
      )
    ],
    clients: (draw) =>
      request(
        payments(`order-${draw.below(5)}`),
        draw.chance(0.5) ? { _tag: "Pay", cents: 100 * (1 + draw.below(2)) } : { _tag: "Look" },
        { attempts: 2 }
      ),
    isAtRest: ({ idsOf, stateOf }) =>
      idsOf("payment").every((id) =>
        stateOf<{ readonly _tag: string }>(payments(id))._tag === "Paid"
      ),
    invariants: [{
      name: "the bank has charged what each payment says",
      atRest: ({ idsOf, services, stateOf }) => {
        const charged = (id: string) => {
          const { cents } = stateOf<{ readonly cents: number }>(payments(id))
          return services.get(id) === cents
        }
        const wrong = idsOf("payment").find((id) => !charged(id))
        return wrong === undefined ? undefined : `${wrong} was not charged as it says`
      }
    }],
    seeds
  })
