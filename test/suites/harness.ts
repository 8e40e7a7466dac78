/** How a contract suite gets at a backend, and restarts it on the same data. */
import { type Context, type Layer, ManagedRuntime } from "effect"

export interface Harness<Api> {
  readonly api: Api
  /** Stops the backend and starts it again on what it kept. */
  readonly reopen: () => Promise<Harness<Api>>
  readonly close: () => Promise<void>
}

/** Makes a fresh, empty backend. */
export type Fresh<Api> = () => Promise<Harness<Api>>

/** A backend whose data are an object in memory. */
export const inMemory = <Api>(make: () => Api): Fresh<Api> => async () => {
  const harness: Harness<Api> = {
    api: make(),
    reopen: async () => harness,
    close: async () => {}
  }
  return harness
}

/** A backend that is a layer on data elsewhere; `discard` removes them. */
export const fromLayer = async <Id, Api, Services, E>(
  service: Context.Key<Id, Api>,
  layer: Layer.Layer<Services | Id, E>,
  discard: () => Promise<void>
): Promise<Harness<Api>> => {
  const runtime = ManagedRuntime.make(layer)
  return {
    api: await runtime.runPromise(service),
    reopen: async () => {
      await runtime.dispose()
      return fromLayer(service, layer, discard)
    },
    close: async () => {
      await runtime.dispose()
      await discard()
    }
  }
}
