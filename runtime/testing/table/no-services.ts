/** Stands in for the services of a definition that no effect calls. */

const standIn = (name: string): object =>
  new Proxy(() => {}, {
    get: (_, key) => standIn(`${name}.${String(key)}`),
    apply: () => {
      const advice = "make the definition with the services of this test"
      throw new TypeError(`${name} was called, where noServices() says that nothing is: ${advice}`)
    }
  })

/**
 * The services of a definition whose effects do not run: for its references, such as those of
 * `clients`, and for tests of its table. `shoppingCart(noServices())` has every service that its
 * type names, and each throws a TypeError when it is called.
 */
export const noServices = <Services extends object>(): Services =>
  // A member of any name, which is a function: it is never used as another value.
  standIn("services") as Services
