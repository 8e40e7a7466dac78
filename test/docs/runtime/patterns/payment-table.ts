/** Tests of single decisions. */
import { noServices, testTable } from "../../../../runtime/testing/index.ts"
import { payment } from "./payment.ts"

/** Throws when a cell decides otherwise; returns which cells no test has called. */
export const testPayment = (): string => {
  const tests = testTable(payment(noServices()))
  const charging = { _tag: "Charging", cents: 500 } as const
  tests.given(charging).when({ _tag: "Pay", cents: 500 }).then({ reply: "charging" })
  tests.given(charging).when({ _tag: "Pay", cents: 700 }).then({ refuse: "OtherAmount" })
  // The timer is due: the bank did not answer, and the attempt is made again.
  tests.given(charging, { nowMs: 1_000 }).tick().then({
    become: charging,
    setTimer: 1_000,
    deferTimer: 31_000,
    perform: [{ _tag: "Charge", cents: 500 }]
  })
  return tests.coverage().text
}
