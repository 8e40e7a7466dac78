/** `restante register` and `restante registrations …`: callbacks that a mailbox pushes to. */
import { Console, Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type CommandFailed, exitCodes } from "../command-failure.ts"
import { mailboxArgument, type MailboxFlags, mailboxFlags, type MailboxLocation, mailboxOf,
  type Named } from "./mailbox.ts"
import { failed, notUnderstood, pathOf } from "./service/index.ts"
import * as mailboxes from "./service/mailboxes.ts"
import { jsonFlag, plain, printJson, table } from "./terminal.ts"

const verifyMs = 15_000

const pollMs = 250

const registrations: Named = {
  expected: "the URI of a registration",
  pattern: /^\/mailboxes\/[^/]+\/registrations\/[^/]+$/
}

const heading = ["STATUS", "FORM", "ATTEMPTS", "NEXT", "CALLBACK", "REGISTRATION", "PROBLEM"]

const cells = (one: mailboxes.MailboxRegistration): ReadonlyArray<string> => {
  const { attempts, callback, form, href, next, problem, status } = one
  return [status, form, attempts ?? "-", next ?? "-", callback, href, problem ?? ""].map(plain)
}

const show = (one: mailboxes.MailboxRegistration, json: boolean): Effect.Effect<void> =>
  json ? printJson(one) : Console.log(table([heading, cells(one)]))

/** Waits until the callback has echoed its challenge; fails when it has not in time. */
const verified = Effect.fnUntraced(function*(
  { remote }: MailboxLocation,
  path: string
): Effect.fn.Return<void, CommandFailed> {
  for (const untilMs = performance.now() + verifyMs;;) {
    const { problem, status } = yield* mailboxes.oneRegistration(remote, path)
    if (status !== "unverified") return
    if (performance.now() > untilMs) {
      const why = problem === undefined ? "" : `: ${plain(problem)}`
      return yield* failed(`the callback has not echoed its challenge yet${why}`)
    }
    yield* Effect.sleep(pollMs)
  }
})

export const registerCommand = Command.make(
  "register",
  {
    ...mailboxFlags,
    mailbox: mailboxArgument,
    callback: Argument.String("callback").pipe(
      Argument.withDescription("The URI that changes are pushed to")
    ),
    wait: Flag.Boolean("wait").pipe(
      Flag.withDescription("Wait until the callback has echoed its challenge"),
      Flag.withDefault(false)
    ),
    json: jsonFlag()
  },
  Effect.fnUntraced(function*({ callback, json, mailbox, wait, ...flags }) {
    if (!URL.canParse(callback)) {
      return yield* failed("expected the callback's URI", exitCodes.usage)
    }
    const place = yield* mailboxOf(mailbox, flags)
    const made = yield* mailboxes.addRegistration(place.remote, place.path, callback)
    if (json) yield* printJson(made)
    else {
      yield* Console.error("The registration, and the secret of its signatures, shown only once:")
      yield* Console.log(`${made.href}\n${made.secret ?? ""}`.trimEnd())
    }
    if (wait) yield* verified(place, pathOf(made.href) ?? (yield* notUnderstood()))
  })
).pipe(
  Command.withDescription("Have a mailbox's changes pushed to a callback"),
  Command.withExamples([{
    command: "restante register alice https://app.example.org/hooks/alice --wait",
    description: "Push, signed, once the callback has answered its challenge"
  }])
)

const which = Argument.String("registration").pipe(Argument.withDescription("Its URI"))

/** A command about one registration. */
const about = (
  name: string,
  description: string,
  act: (at: MailboxLocation, json: boolean) => Effect.Effect<void, CommandFailed>
) =>
  Command.make(
    name,
    { ...mailboxFlags, which, json: jsonFlag() },
    ({ json, which: uri, ...flags }) =>
      Effect.flatMap(mailboxOf(uri, flags, registrations), (place) => act(place, json))
  ).pipe(Command.withDescription(description))

const list = Command.make(
  "list",
  { ...mailboxFlags, mailbox: mailboxArgument, json: jsonFlag("One JSON object a line") },
  Effect.fnUntraced(function*({ json, mailbox, ...flags }: MailboxFlags & {
    readonly json: boolean
    readonly mailbox: string
  }) {
    const { path, remote } = yield* mailboxOf(mailbox, flags)
    const all = yield* mailboxes.listRegistrations(remote, path)
    if (json) { for (const one of all) yield* Console.log(JSON.stringify(one)) }
    else if (all.length === 0) yield* Console.error("Nobody is registered.")
    else yield* Console.log(table([heading, ...all.map(cells)]))
  })
).pipe(Command.withDescription("List a mailbox's registrations"))

export const registrationsCommand = Command.make("registrations").pipe(
  Command.withDescription("The callbacks that a mailbox pushes to, and how they stand"),
  Command.withSubcommands([
    list,
    about(
      "show",
      "Show how a registration stands",
      ({ path, remote }, json) =>
        Effect.flatMap(mailboxes.oneRegistration(remote, path), (one) => show(one, json))
    ),
    about(
      "lift",
      "Lift a suspension: verify the callback anew",
      ({ path, remote }, json) =>
        Effect.flatMap(mailboxes.liftRegistration(remote, path), (one) => show(one, json))
    ),
    about(
      "rotate",
      "Make a new secret; both sign for a day",
      ({ path, remote }, json) =>
        Effect.flatMap(
          mailboxes.rotateSecret(remote, path),
          (secret) => json ? printJson({ secret }) : Console.log(secret)
        )
    ),
    about("delete", "End a registration", ({ path, remote }, json) =>
      Effect.andThen(
        mailboxes.removeRegistration(remote, path),
        json ? printJson({ deleted: path }) : Console.error("The registration is deleted.")
      ))
  ])
)
