/** Where the command line writes what it says of itself. */
import { Console, Effect } from "effect"
import { CliOutput } from "effect/cli"

/** The console of a command that prints nothing: who reads its output would take help for it. */
const toPeople: Console.Console = Object.assign(Object.create(console), {
  log: (...told: ReadonlyArray<unknown>) => process.stderr.write(`${told.join(" ")}\n`)
})

/** Help goes to standard output when it was asked for, and else beside it. */
export const presenter: CliOutput.Presenter = {
  present: (event) => {
    const shown = CliOutput.defaultPresenter.present(event)
    const isAsked = event._tag === "Version" ||
      (event._tag === "Help" && event.reason !== "Implicit")
    return isAsked ? shown : Effect.provideService(shown, Console.Console, toPeople)
  }
}
