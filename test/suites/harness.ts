/** The backend of a contract suite; the suite can restart it on the same data. */
import { type Context, type Layer, ManagedRuntime } from "effect"

export interface Harness<Api> {
  readonly api: Api
  /** Stops the backend and starts it again on the same data. */
  readonly reopen: () => Promise<Harness<Api>>
  readonly close: () => Promise<void>
}

/** Makes a fresh, empty backend. */
export type Fresh<Api> = () => Promise<Harness<Api>>

/** A backend with its data in memory. */
export const inMemory = <Api>(make: () => Api): Fresh<Api> => async () => {
  const harness: Harness<Api> = {
    api: make(),
    reopen: async () => harness,
    close: async () => {}
  }
  return harness
}

/** A backend that is a layer on external data; `discard` deletes the data. */
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
