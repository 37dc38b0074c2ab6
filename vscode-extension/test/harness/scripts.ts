/** Scripts shared by the tests of the window and of the host. */

/** A script that is refused, with the reason at the line of its strategy. */
export const REFUSED = `import tensorflow as tf

strategy = tf.distribute.TPUStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
model.fit(tf.ones([4, 1]), tf.ones([4, 1]))
`;
