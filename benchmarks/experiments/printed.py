"""What the papers printed, beside which ours stands. Where they have a plot without numbers, there is none here."""

KOSTOPOULOU = "Kostopoulou et al."
VASILAKOPOULOS = "Vasilakopoulos' thesis"
SOURCES = """- *Kostopoulou et al.*: Kostopoulou, Charalambidis, Rondogiannis, "Recursive Function Definitions in Static
  Dataflow Graphs and their Implementation in TensorFlow". Its machine is not stated.
- *Kostopoulou's thesis*: the same title, NKUA, 2018. TensorFlow 1.4; its machine is not stated.
- *Vasilakopoulos' thesis*: "An Automatic Differentiation Algorithm for Recursive Functions and its Implementation in
  TensorFlow", NKUA, 2024. TensorFlow 2.16 on a CPU that is not stated.
- *Jeong et al.*: "Improving the Expressiveness of Deep Learning Frameworks with Recursion", EuroSys 2018. Two 18-core
  Xeon E5-2695 at 2.10 GHz, TensorFlow 1.3; PyTorch and folding on a Titan X.
- Abadi, Isard and Murray, "A Computational Model for TensorFlow" (MAPL 2017), measures nothing.
"""
JEONG = "Jeong et al."

# Instances per second where nothing else is said. By batch: recursion, iteration.
TABLE_3 = {1: (143.33, 84.56), 5: (103.06, 186.96), 10: (101.27, 228.60), 25: (110.72, 235.69)}
TABLE_2 = {"static": (143.33, 161.29), "iteration": (84.56, 138.8), "unrolling": (0.99, 1.74)}  # training, inference
TABLE_6_1 = {"static": (179.57, 7.41), "iteration": (268.91, 8.24)}  # seconds: 4 epochs of 700 trees; 200 trees
EPOCHS, TRAINED, INFERRED = 4, 700, 200

JEONG_1 = {1: (46.7, 27.3, 7.6), 10: (125.2, 78.2, 22.7), 25: (129.7, 83.1, 45.4)}  # balanced, moderate, linear
JEONG_2 = {  # inference and training: iteration, recursion, folding
    1: ((19.2, 81.4, 16.5), (2.5, 4.8, 9.0)),
    10: ((49.3, 217.9, 52.2), (4.0, 4.2, 37.5)),
    25: ((72.1, 269.9, 61.6), (5.5, 3.6, 54.7)),
}
JEONG_3 = {1: (0.30, 5.59), 64: (0.34, 9.30)}  # iteration, recursion
JEONG_9 = 0.93  # the accuracy to which figure 9 plots the time
