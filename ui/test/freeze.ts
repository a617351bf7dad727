/** The window runs with frozen prototypes; code that cannot live with that must fail here first. */
Object.freeze(Object.prototype);
