/** The resources that arguments name, and whether they are of the service that a command calls. */
import { Effect } from "effect"
import type { CommandFailed } from "../../command-failure.ts"
import { serviceReportOf } from "../../service-report.ts"
import { type NamedResource, namedResource, type ResourceKind,
  resourceNames } from "../resource-name/index.ts"
import { plain } from "../terminal.ts"
import { type ServiceLocation, type Sourced, wrongUsage } from "./service-location.ts"
import { call } from "./service.ts"

/** The resource that an argument names; `-` was read from standard input, and is secret. */
export const resourceOf = (
  text: string,
  expected: ReadonlyArray<ResourceKind>,
  argument = text
): Effect.Effect<NamedResource, CommandFailed> => {
  const named = namedResource(text, ...expected)
  return named === undefined
    ? Effect.fail(wrongUsage(
      `${argument === "-" ? "standard input" : argument} names nothing that the command is for`,
      `give ${resourceNames(...expected)}`
    ))
    : Effect.succeed(named)
}

/** The origin with which the service begins its URIs; undefined if it does not say it. */
const publicOriginOf = Effect.fnUntraced(function*(baseUrl: string) {
  // A proxy may keep the service document from others.
  const get = { method: "GET", uri: "/", acceptedStatuses: [401, 403, 404] } as const
  // Whoever answers there, this request needs no token.
  const { text } = yield* call({ baseUrl, token: undefined }, (client) => client.request(get))
  return serviceReportOf(text)?.baseUrl
})

/**
 * Fails unless a URI is one of the service that the command calls: it begins with its address, or
 * with the base URL that the service itself states, which a proxy or a private network makes
 * another one. Otherwise the command would be about a resource of the same name elsewhere.
 */
export const assertOwn = Effect.fnUntraced(function*(
  { baseUrl }: Pick<ServiceLocation, "baseUrl">,
  { origin }: Pick<NamedResource, "origin">,
  argument: string
): Effect.fn.Return<void, CommandFailed> {
  if (origin === undefined || origin === new URL(baseUrl).origin) return
  if (origin === (yield* publicOriginOf(baseUrl))) return
  const text = argument === "-" ? "the URI of standard input" : plain(argument)
  return yield* wrongUsage(
    `${text} is no address of ${baseUrl}, which the command calls`,
    "give the name alone, or the service with --base-url or --context"
  )
})

/** {@link resourceOf} of the service that the command calls, as {@link assertOwn} checks. */
export const ownResourceOf = Effect.fnUntraced(function*(
  service: Pick<ServiceLocation, "baseUrl">,
  text: string,
  expected: ResourceKind,
  argument = text
): Effect.fn.Return<NamedResource, CommandFailed> {
  const named = yield* resourceOf(text, [expected], argument)
  yield* assertOwn(service, named, argument)
  return named
})

/** The name of an account of the service that the command calls. */
export const ownAccountOf = Effect.fnUntraced(function*(
  service: Pick<ServiceLocation, "baseUrl">,
  account: Sourced<string> | undefined
): Effect.fn.Return<string | undefined, CommandFailed> {
  if (account === undefined) return undefined
  const { from, value } = account
  const { segments } = yield* ownResourceOf(service, value, "account", `${value} (${from})`)
  return segments[0]
})

/**
 * The URIs of mailboxes that somebody sends to, which may be of other services. A name, a path and
 * a URI at the address called are of this service: their URIs begin with the base URL that the
 * service states. With another one the service would deliver to itself by the network.
 */
export const recipientUris = Effect.fnUntraced(function*(
  { baseUrl }: Pick<ServiceLocation, "baseUrl">,
  texts: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<string>, CommandFailed> {
  const called = new URL(baseUrl).origin
  const paths = texts.map((text) => {
    const { origin = called, path } = namedResource(text, "mailbox") ?? {}
    return origin === called ? path : undefined
  })
  if (paths.every((path) => path === undefined)) return texts
  const start = (yield* publicOriginOf(baseUrl)) ?? baseUrl
  return texts.map((text, at) => paths[at] === undefined ? text : start + paths[at])
})
