/** What the tests use of the package pubsubhubbub, which has no types of its own. */
declare module "pubsubhubbub" {
  import type { EventEmitter } from "node:events"
  import type { Server } from "node:http"

  export interface Options {
    readonly callbackUrl: string
    readonly secret?: string
    readonly username?: string
    readonly password?: string
    readonly leaseSeconds?: number
  }

  /** A subscriber: its callback's server, and the one who asks hubs. */
  export interface Subscriber extends EventEmitter {
    readonly server: Server
    readonly listen: (port: number, host: string) => void
    readonly subscribe: Ask
    readonly unsubscribe: Ask
  }

  export type Ask = (topic: string, hub: string, done: (error: Error | null) => void) => void

  export const createServer: (options: Options) => Subscriber
}
